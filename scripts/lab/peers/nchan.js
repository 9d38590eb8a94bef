/*
 * nginx with the module nchan, one worker, as an EventSource server.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findCommand } from '../install.js';

/** @returns {string} '' if it is not installed */
export function nchanModule() {
  const nginx = findCommand('nginx');
  if (!nginx) return '';
  const folders = [
    join(dirname(nginx), '..', 'lib', 'nginx', 'modules'),
    '/usr/lib/nginx/modules',
    '/usr/share/nginx/modules',
  ];
  return folders.map((folder) => join(folder, 'ngx_nchan_module.so')).find((path) => existsSync(path)) ?? '';
}

/** @param {number} port @param {number} intervalMs @param {string} folder @param {string[]} [files] certificate and key for TLS @returns {string} its path */
export function nginxConfig(port, intervalMs, folder, files = []) {
  const path = join(folder, 'nginx.conf');
  mkdirSync(join(folder, 'logs'), { recursive: true });
  writeFileSync(path, configText(port, Math.round(intervalMs / 1000), folder, files));
  return path;
}

/** @param {number} port @param {number} intervalS @param {string} folder @param {string[]} files */
function configText(port, intervalS, folder, [cert, key]) {
  const user = process.getuid?.() === 0 ? 'user root;\n' : '';
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${folder}/tmp;`,
  );
  const tls = `
    ssl_certificate ${cert};
    ssl_certificate_key ${key};
    ssl_protocols TLSv1.3;`;
  return `load_module ${nchanModule()};
${user}daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 65536; }
http {
  access_log off;
${temporary.join('\n')}
  nchan_shared_memory_size 512M;
  server {
    listen 127.0.0.1:${port}${cert ? ' ssl' : ''} backlog=4096;${cert ? tls : ''}
    location = / {
      nchan_subscriber eventsource;
      nchan_channel_id all;
      nchan_eventsource_ping_interval ${intervalS};
    }
    location / { return 404; }
  }
}
`;
}
