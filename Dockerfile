# The image of Paceline: controller, console and the programs in users' pods. `make image` builds it; so does every
# other builder of Dockerfiles, in a checkout where `make setup` has built the web console.
#
#   BASE     an image with Python 3.11 or newer, its venv module, and git or apt-get
#   CONSOLE  `no` leaves the web console out
ARG BASE=docker.io/library/python:3.11-slim

FROM ${BASE} AS build
ARG UV_VERSION=0.13.7
ARG CONSOLE
ARG PIP_INDEX_URL
ARG UV_DEFAULT_INDEX
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_SYSTEM_CERTS=1
RUN python3 -m venv /uv && /uv/bin/pip install --quiet "uv==${UV_VERSION}"
WORKDIR /src
COPY pyproject.toml requirements.lock hatch_build.py README.md LICENSE CHANGELOG.md ./
COPY src src
COPY examples examples
# The versions of requirements.lock, those of the build tool too; bytecode now, because the root filesystem is read-only.
RUN rm -rf src/paceline/testing \
    && /uv/bin/uv venv --quiet --python "$(command -v python3)" /opt/paceline \
    && /uv/bin/uv pip install --quiet --python /opt/paceline/bin/python --compile-bytecode \
        --constraint requirements.lock --build-constraint requirements.lock .

FROM ${BASE}
RUN command -v git >/dev/null || { \
        apt-get update -qq && apt-get install -y -qq --no-install-recommends git ca-certificates \
        && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log; }
COPY --from=build /opt/paceline /opt/paceline
# Any user may run it: a container of ours in a pod has the user of the job's own command.
ENV PATH=/opt/paceline/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["paceline"]
LABEL org.opencontainers.image.title="paceline" org.opencontainers.image.licenses="Apache-2.0"
