/*
 * The user data of an instance: tells cloud-init at the first boot how to become a drone. Pure, except that it contains
 * the drone's source.
 */
import { gzipSync } from 'node:zlib';
import { HoldfastError } from '../../../lib/errors.js';
import { wordsOf } from '../../texts.js';
import { pack, UNPACK } from './parcel.js';

export const CONTROL_PORT = 8889;
/** EC2 counts the bytes before base64. */
export const MOST_USER_DATA_BYTES = 16_384;
export const FOLDER = '/opt/holdfast';
const NOFILE = 1_048_576;

/**
 * Node.js comes from the distribution, which signs it, so there is no checksum to maintain. On Amazon Linux each Node.js
 * version is a package of its own; `latest` includes packages newer than the image.
 */
const SETUP = `set -eu
export HOME=/root
cd ${FOLDER}
if command -v dnf >/dev/null
then dnf install -y -q --releasever=latest nodejs22
else
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 nodejs
fi
ln -sf "$(command -v node-22 || command -v node)" node
./node -e 'process.exit(Number.parseInt(process.versions.node) < 20)' || {
  echo "holdfast: this image has Node.js $(./node -v), expected 20 or later" >&2
  exit 1
}
./node unpack.mjs
sysctl -q --system || true
systemctl daemon-reload
systemctl enable --now holdfast-drone
`;

/** Keeps outgoing connections off the control port. */
const SYSCTL = `net.ipv4.ip_local_port_range = 1024 65535
net.ipv4.ip_local_reserved_ports = ${CONTROL_PORT}
`;

/**
 * The service. A drone whose target refuses it ends; systemd restarts it for some minutes, then gives up.
 * @param {string[]} args @returns {string}
 */
function unitOf(args) {
  const command = [`${FOLDER}/node`, 'fleet/drone.js', ...args].map(quoteForUnit).join(' ');
  return `[Unit]
Description=Holdfast drone
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=600
StartLimitBurst=20
[Service]
DynamicUser=yes
NoNewPrivileges=yes
IPAddressDeny=169.254.169.254
WorkingDirectory=${FOLDER}
EnvironmentFile=/etc/holdfast-drone.env
LimitNOFILE=${NOFILE}
Restart=on-failure
RestartSec=10
ExecStart=${command}
[Install]
WantedBy=multi-user.target
`;
}

/** A word of ExecStart, where % and $ have special meanings. @param {string} word */
function quoteForUnit(word) {
  const plain = word.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /^[\w./:,%-]+$/.test(plain) ? plain : `"${plain.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')}"`;
}

/** A value in an EnvironmentFile. @param {string} value */
function quoteForEnvironment(value) {
  return `"${value.replace(/[\\"`$]/g, '\\$&')}"`;
}

/**
 * The flags of a drone that anybody with the token may control.
 * @param {import('../../texts.js').Texts} params as in `POST /set`
 * @returns {string[]}
 */
function argsOf(params) {
  const given = Object.fromEntries(Object.entries(params).filter(([, value]) => value !== ''));
  return ['--listen', '0.0.0.0', '--listen-port', String(CONTROL_PORT), '--quiet', ...wordsOf(given)];
}

/** @param {string} path @param {string} content @param {string} [permissions] */
function file(path, content, permissions = '0644') {
  return { path, content, permissions };
}

/**
 * @param {import('../../texts.js').Texts} params @param {string} token
 * @returns {string} the cloud-config; JSON is valid YAML
 */
export function cloudConfig(params, token) {
  const config = {
    write_files: [
      { ...file(`${FOLDER}/parcel`, pack().toString('base64')), encoding: 'b64' },
      file(`${FOLDER}/unpack.mjs`, UNPACK),
      file(`${FOLDER}/setup.sh`, SETUP),
      file('/etc/holdfast-drone.env', `HOLDFAST_TOKEN=${quoteForEnvironment(token)}\n`, '0600'),
      file('/etc/sysctl.d/90-holdfast.conf', SYSCTL),
      file('/etc/systemd/system/holdfast-drone.service', unitOf(argsOf(params))),
    ],
    runcmd: [['sh', `${FOLDER}/setup.sh`]],
  };
  return `#cloud-config\n${JSON.stringify(config)}\n`;
}

/**
 * The user data, which cloud-init decompresses.
 * @param {import('../../texts.js').Texts} params of the drone
 * @param {string} token
 * @returns {Buffer}
 * @throws {HoldfastError} USER_DATA if it is larger than EC2 accepts
 */
export function userData(params, token) {
  const bytes = gzipSync(cloudConfig(params, token), { level: 9 });
  if (bytes.length >= MOST_USER_DATA_BYTES) {
    const line = `the user data has ${bytes.length} bytes, more than the ${MOST_USER_DATA_BYTES} that EC2 accepts`;
    throw new HoldfastError('USER_DATA', `${line}: use shorter parameters (port, sources)`);
  }
  return bytes;
}
