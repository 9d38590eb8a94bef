# Holdfast as a container, without root. It is made from the package, so a clone and a download do the same:
#   npm run prebuilt && npm pack      (in a clone)      or      npm pack holdfast      (anywhere, with this file)
#   docker build --tag holdfast .
#   docker run --publish 8888:8888 --ulimit nofile=1048576:1048576 holdfast --anonymous
# docs/deploy.md says what of this was tried, and how.
ARG NODE=docker.io/library/node:22-slim

FROM ${NODE} AS install
# Exactly one.
COPY holdfast-*.tgz /tmp/holdfast.tgz
WORKDIR /opt/holdfast
RUN npm install --omit=dev --no-audit --no-fund --no-update-notifier --prefix . /tmp/holdfast.tgz \
 && rm -rf /root/.npm

FROM ${NODE}
COPY --from=install /opt/holdfast /opt/holdfast
# For --store. A volume takes the owner from here.
RUN install -d -o 1000 -g 1000 -m 700 /data
VOLUME /data
WORKDIR /data
# The user node of the image, as numbers: that is how Kubernetes knows that it is not root.
USER 1000:1000
ENV NODE_ENV=production HOLDFAST_DASHBOARD=off HOLDFAST_NO_LOG=1
# 8890 is the admin port. It listens on 127.0.0.1 of the container, unless HOLDFAST_ADMIN_HOST and HOLDFAST_ADMIN_TOKEN say otherwise. The
# health check needs it to be a number on one of the two.
EXPOSE 8888 8890
# Node, because the image has no curl. It asks /healthz, which needs no token: a server that is only behind NATS must not be restarted.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.HOLDFAST_ADMIN_PORT || 8890}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# It drains over --drain (5 s), so stop it with more time than the 10 s of Docker: --stop-timeout 30.
STOPSIGNAL SIGTERM
# PID 1 needs no --init: the server handles its signals, and Node reaps its children: the workers and, at the
# start, a check of --store.
ENTRYPOINT ["node", "/opt/holdfast/node_modules/holdfast/server.js"]
