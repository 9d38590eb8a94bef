/*
 * The face of the addon, as `src/lib.rs` and `src/dialer.rs` have it; what each value means is said there.
 */

/**
 * @typedef {object} Settings
 * @property {number} shards
 * @property {number} seat
 * @property {number} seats
 * @property {boolean} unshare
 * @property {number} capacity
 * @property {number} connections
 * @property {number} pingIntervalMs
 * @property {string} pingText
 * @property {string} pingEvents
 * @property {boolean} nodelay
 * @property {number} maxHeadBytes
 * @property {number} headTimeoutMs
 * @property {number} maxBacklogBytes
 * @property {number} userTimeoutMs
 * @property {string[]} headers
 * @property {boolean} reportsCloses
 */

/**
 * @typedef {object} Happenings
 * @property {Float64Array} heads
 * @property {Buffer} lines
 * @property {Float64Array} closed
 * @property {Float64Array} adopted
 * @property {number[]} passed
 * @property {number} drained
 * @property {boolean} hasMore
 */

/**
 * @typedef {object} Encoded
 * @property {number} count
 * @property {number} sum
 * @property {number} min
 * @property {number} max
 * @property {number[]} buckets
 */

/**
 * @typedef {object} Counters
 * @property {number} streams
 * @property {number} connections
 * @property {number} opened
 * @property {number[]} closed
 * @property {number} pings
 * @property {number} deliveries
 * @property {number} bytesWritten
 * @property {number} backlogBytes
 * @property {Encoded} latenessUs
 * @property {Encoded} openCpuNs
 * @property {Encoded} pingCpuNs
 * @property {Encoded} deliveryCpuNs
 */

/**
 * @typedef {object} Core
 * @property {boolean} isUnshared
 * @property {() => number} takeBell
 * @property {(address: string, port: number) => number} listen
 * @property {(records: Uint8Array) => void} command
 * @property {(mostHeads: number) => Happenings} takeEvents
 * @property {(fd: number, token: number, format: number, channels: string[]) => '' | 'full' | 'busy'} adopt
 * @property {() => Counters} takeCounters
 * @property {() => void} stop
 */

/**
 * @typedef {object} DialSettings
 * @property {number} connections
 * @property {boolean} unshare
 */

/**
 * @typedef {object} DialTarget
 * @property {string[]} addresses
 * @property {number[]} ports
 * @property {string[]} sources
 * @property {Buffer} request
 * @property {number} pingIntervalMs
 * @property {number} timeoutMs
 * @property {boolean} isStrict
 * @property {boolean} allowsMessages
 */

/**
 * @typedef {object} DialCounters
 * @property {number} inFlight
 * @property {number} open
 * @property {number} overdue
 * @property {number} opened
 * @property {number} closed
 * @property {number} pings
 * @property {number} messages
 * @property {number} bytes
 * @property {number[]} failed
 * @property {number[]} lost
 * @property {{ cause: number, text: string }[]} samples
 * @property {Encoded} connectUs
 * @property {Encoded} firstByteUs
 * @property {Encoded} latenessUs
 * @property {Encoded} deliveryUs
 */

/**
 * @typedef {object} Dialer
 * @property {number} most
 * @property {(target: DialTarget) => void} aim
 * @property {(count: number) => void} open
 * @property {(count: number) => void} close
 * @property {() => DialCounters} take
 * @property {() => Promise<void>} stop
 */

/**
 * @typedef {object} Native
 * @property {new (settings: Settings) => Core} Core
 * @property {new (settings: DialSettings) => Dialer} Dialer
 * @property {() => boolean} canUnshare
 */

export {};
