# docker build --tag neuroevo . && docker run --rm --volume "$PWD:/work" neuroevo train demo
# The first stage compiles for all x86-64 processors; the second has neither a compiler nor sources.
FROM python:3.12-slim-bookworm AS build
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends g++ zlib1g-dev
WORKDIR /source
COPY . .
RUN python -m venv /opt/neuroevo && \
    /opt/neuroevo/bin/pip install --no-cache-dir --constraint constraints.txt \
      --config-settings=cmake.define.NEUROEVO_ARCH=portable '.[inspect,sweep]'

FROM python:3.12-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends libosmesa6 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/neuroevo /opt/neuroevo
ENV PATH=/opt/neuroevo/bin:$PATH
WORKDIR /work
ENTRYPOINT ["neuroevo"]
CMD ["--help"]
