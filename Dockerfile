# One image for every process of Gatehouse; its first argument is the app:
#   docker build -t gatehouse .
#   docker run gatehouse gateway | identity | authorization | directory-sync | audit-logs | notifications | suite | gatehouse <command>
# Any base with Node 20.19 or newer and npm will do: --build-arg BASE=…
ARG BASE=node:24-bookworm-slim

# The packages come before the sources, so that a change of code does not install them again.
FROM ${BASE} AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --no-audit --no-fund

FROM packages AS build
COPY run.mjs bundle.mjs .swcrc ./
COPY libs ./libs
COPY apps ./apps
RUN node run.mjs build

# What compiles the sources is a dependency where `npm start` builds them, and is of no use in here.
FROM packages AS production
RUN npm uninstall --no-save --omit=dev --no-audit --no-fund @swc/cli @swc/core rolldown

FROM ${BASE}
WORKDIR /app
# The one place that is written to, and only while no engines are named.
RUN mkdir /data && chown 10001:10001 /data && chmod 0700 /data
COPY --from=production /app/node_modules ./node_modules
COPY --from=build /app/dist/programs ./dist/programs
COPY package.json LICENSE ./
COPY docker/start.mjs docker/health.mjs docker/eventstore-rights.mjs ./docker/
# By number, since an orchestrator cannot tell from a name that it is not root.
USER 10001:10001
# Young objects have up to 32 MiB, three times over, as with `npm start`. Node gives them 16 at most and 1 in a container of 512 MiB, so that what a request made is moved about for others that are under way.
ENV NODE_ENV=production GATEHOUSE_MODE=production DATA_DIR=/data NODE_OPTIONS=--max-semi-space-size=32
# The API (3000), health and metrics (9090), the other processes of a cluster (7400).
EXPOSE 3000 9090 7400
STOPSIGNAL SIGTERM
# A new version of a view is filled before it serves, so a start may take its time; unready is not unhealthy to an orchestrator of its own.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10m --retries=3 CMD ["node", "docker/health.mjs"]
ENTRYPOINT ["node", "docker/start.mjs"]
CMD ["suite"]
