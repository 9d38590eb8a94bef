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

/** @param {number} port @param {number} intervalMs @param {string} folder @returns {string} its path */
export function nginxConfig(port, intervalMs, folder) {
  const path = join(folder, 'nginx.conf');
  mkdirSync(join(folder, 'logs'), { recursive: true });
  writeFileSync(path, configText(port, Math.round(intervalMs / 1000), folder));
  return path;
}

/** @param {number} port @param {number} intervalS @param {string} folder */
function configText(port, intervalS, folder) {
  const user = process.getuid?.() === 0 ? 'user root;\n' : '';
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${folder}/tmp;`,
  );
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
    listen 127.0.0.1:${port} backlog=4096;
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
