/*
 * The surface of the addon, as native/src/lib.rs, dialer.rs and notifier.rs export it.
 */

/**
 * The tables of the native core, for test/native.parity.test.js. `number` is checked when the addon is loaded.
 * @typedef {object} Protocol
 * @property {number} number
 * @property {{ name: string, code: number }[]} ops
 * @property {string[]} encodings by number
 * @property {string[]} framings by number
 * @property {string[]} reasons why streams end
 * @property {string[]} labels what streams can be ended by
 * @property {number[]} refusals statuses
 * @property {string[]} refusalBodies in the order of the statuses
 * @property {string[]} causes why a dialled connection failed or was lost
 * @property {string[]} counts
 * @property {string[]} histograms each as 'name unit'
 * @property {string[]} options
 * @property {string[]} dialCounts
 * @property {string[]} dialHistograms each as 'name unit'
 */

/**
 * A histogram without its unit, which is in the table that it belongs to.
 * @typedef {object} RawHistogram
 * @property {number} count
 * @property {number} sum
 * @property {number} min
 * @property {number} max
 * @property {number[]} buckets index, count, index, count…
 */

/**
 * @typedef {object} CoreSettings
 * @property {Float64Array} options in the order of `Protocol.options`; booleans are 0 or 1
 * @property {string[]} headers lower-case names of the headers to include in the record of each head
 * @property {Buffer[]} pings the payload of a ping, by encoding
 * @property {string[]} proxies addresses and ranges
 */

/**
 * What has happened since the last call.
 * @typedef {object} CoreEvents
 * @property {Float64Array} heads ids of the connections whose heads are in `lines`
 * @property {Buffer} lines
 * @property {Float64Array} closed id, index of the reason, id, index…
 * @property {Float64Array} said id, bytes of its message, id…: what the clients of WebSockets have said
 * @property {Buffer} saidText their messages, one after the other
 * @property {Float64Array} adopted token, id (negative if refused), token, id…
 * @property {Float64Array} published token, number of streams, token…
 * @property {{ token: number, leftOut: number, names: string[], streams: number[] }[]} counted the largest channels of a shard
 * @property {number[]} passed descriptors
 * @property {Buffer[]} passedRead what was read from each of them already
 * @property {string[]} passedFrom '' for a connection of its own; of one with TLS, the address and port of its client ('127.0.0.1 4711').
 *   Then the descriptor is one end of a socket pair, whose other end the shard encrypts and decrypts for
 * @property {number[]} passedIds their ids, for `adopt`; 0 for those without TLS
 * @property {Move[]} moves rounds of a handover in which nothing is on its way any more
 * @property {Released[]} released shards that have released what moved
 * @property {Taken[]} taken streams that were taken over, if that was asked for
 * @property {Went[]} went shards in which all that was parked is used
 * @property {number[]} failed shards that panicked and were restarted
 * @property {number} drained shards that have no connection left
 * @property {boolean} hasMore whether to call again soon
 */

/**
 * @typedef {{ shard: number, prepared: number, left: number, isBroken: boolean }} Move
 * @typedef {{ shard: number, ids: Float64Array }} Released before, after, before…
 * @typedef {{ id: number, channels: string[], tag: string, subject: number, token: number, address: string }} Taken a stream that was
 *   taken over; tag and address '' for none
 * @typedef {{ shard: number, streams: number }} Went
 */

/**
 * @typedef {object} CoreCounters
 * @property {Float64Array} counts in the order of `Protocol.counts`
 * @property {Float64Array} closed by reason
 * @property {Float64Array} refused by status
 * @property {RawHistogram[]} histograms in the order of `Protocol.histograms`, since the last time
 */

/**
 * @typedef {object} Core
 * @property {boolean} hasOwnTables whether each shard has a descriptor table of its own
 * @property {() => number} takeBell returns a descriptor that becomes readable when there are events to take
 * @property {(address: string, port: number, isTls: boolean) => number} listen returns the port; `isTls` needs `useTls` before
 * @property {(tls: Tls) => void} useTls for handshakes that begin from now on
 * @property {(records: Uint8Array, wakesAll: boolean) => void} command
 * @property {(mostHeads: number) => CoreEvents} takeEvents
 * @property {(fd: number, token: number, format: number, channels: string[], relayed: number, opening?: string) => '' | 'full' | 'busy'} adopt copies
 *   the descriptor
 * @property {(token: number, most: number) => void} countChannels every shard reports those with most streams
 * @property {() => string[]} offer lets other shards connect; returns the names under which they can, by shard
 * @property {(lengthMs: number, wantsIds: boolean) => void} beginMove each shard reports in `moves`
 * @property {() => void} release each shard reports in `released`
 * @property {() => void} takeBack
 * @property {() => void} withdraw
 * @property {(shard: number, name: string, weight: number) => void} takeFrom connects to an offer
 * @property {(quiet: string[] | null) => void} go each shard reports in `taken` and `went`
 * @property {() => void} dropParked
 * @property {() => number} queuedBytes what takes memory until it was delivered or written
 * @property {() => number} queuedMessageBytes the part of it that consists of messages
 * @property {() => CoreCounters} takeCounters
 * @property {(shard: number) => void} failShard makes a shard panic; for tests
 * @property {() => void} stop
 */

/**
 * Certificates, and how clients may use them.
 * @typedef {object} Tls
 *
 * @typedef {object} TlsSettings
 * @property {{ chain: Buffer, key: Buffer }[]} certificates PEM; the first one is also for clients that name no server, or another one
 * @property {12 | 13} minVersion
 * @property {Buffer} ticketSecret 32 bytes; the same wherever a ticket is to be accepted
 */

/**
 * Keeps a port from other servers; native/core/src/claim.rs says how.
 * @typedef {object} PortClaim
 * @property {number} port
 * @property {() => void} release
 */

/**
 * @typedef {object} DialSettings
 * @property {number} connections
 * @property {boolean} unshare
 */

/**
 * @typedef {object} DialTarget
 * @property {{ name: string, host: string, addresses: string[], ports: number[] }[]} servers
 * @property {string[]} sources
 * @property {Buffer} request
 * @property {DialSubscription} [subscription] the request differs from stream to stream
 * @property {number} pingIntervalMs
 * @property {boolean} idlePings
 * @property {number} timeoutMs
 * @property {string} format
 * @property {boolean} isStrict
 * @property {boolean} allowsMessages
 * @property {{ roots?: Buffer, resumes: boolean }} [security] roots: PEM; none if every certificate is accepted
 */

/**
 * @typedef {object} DialSubscription
 * @property {DialPiece[]} request
 * @property {DialPiece[][]} topics
 * @property {number} first
 * @property {number} step
 * @property {boolean} isTokenShared
 */

/**
 * @typedef {object} DialPiece
 * @property {string} kind as in fleet/drone/template.js
 * @property {string} text
 * @property {number} by
 */

/**
 * @typedef {object} DialCounters
 * @property {Float64Array} counts in the order of `Protocol.dialCounts`
 * @property {Float64Array} failed by cause
 * @property {Float64Array} lost by cause
 * @property {{ cause: number, text: string }[]} samples
 * @property {{ open: number, opened: number, failed: number, lost: number }[]} servers in their order; none if there is only one
 * @property {RawHistogram[]} histograms in the order of `Protocol.dialHistograms`, since the last time
 */

/**
 * @typedef {object} Dialer
 * @property {number} most
 * @property {(target: DialTarget) => void} aim
 * @property {(count: number) => void} open
 * @property {(count: number) => void} close
 * @property {(count: number) => void} cut
 * @property {(count: number) => void} churn
 * @property {(from: number, tokens: string[]) => void} setTokens
 * @property {() => DialCounters} take
 * @property {() => Promise<void>} stop
 */

/**
 * Sends datagrams to a service manager.
 * @typedef {object} Notifier
 * @property {(text: string) => boolean} tell false if its queue is full; throws if there is nobody
 */

/**
 * @typedef {object} Native
 * @property {() => Protocol} protocol
 * @property {new (settings: CoreSettings) => Core} Core
 * @property {new (settings: TlsSettings) => Tls} Tls throws what is wrong, such as 'certificate 2: the key does not belong to the certificate'
 * @property {{ new (address: string, port: number): PortClaim, join: (address: string, port: number) => PortClaim }} PortClaim throws
 *   EADDRINUSE; `join` shares the claim of another process
 * @property {new (settings: DialSettings) => Dialer} Dialer
 * @property {new (path: string) => Notifier} Notifier `path` as in NOTIFY_SOCKET
 * @property {() => boolean} canUnshare whether threads can have their own descriptor tables here
 */

export {};
