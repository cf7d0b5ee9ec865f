# clinsafe in a container: audits, reports and the guard on the command line. No weights and no keys are in the image.
#
#   docker build -t clinsafe .
#   docker run --rm --read-only --tmpfs /tmp -v clinsafe:/data clinsafe audit --model sentence-transformers/all-MiniLM-L6-v2
#
# EXTRAS: parts of clinsafe to install. TORCH_INDEX: a package index with CPU-only torch builds; without it pip takes
# torch from its usual place, on Linux several gigabytes with CUDA.
ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS build
ARG EXTRAS=audit,guard
ARG TORCH_INDEX=
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PATH=/opt/clinsafe/bin:$PATH
WORKDIR /src
COPY requirements/constraints.txt requirements/constraints.txt
# torch by name first: with nothing installed, another package's range would take another build of it.
RUN python -m venv /opt/clinsafe \
    && case ",$EXTRAS," in \
         *,audit,*|*,all,*) pip install ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} -c requirements/constraints.txt \
           "$(grep '^torch==' requirements/constraints.txt)" ;; \
       esac
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY benchmarks benchmarks
COPY checklist checklist
COPY mitigations mitigations
COPY reports reports
COPY clinsafe clinsafe
RUN pip install -c requirements/constraints.txt ".[${EXTRAS}]" \
    && clinsafe --version

FROM python:${PYTHON}
LABEL org.opencontainers.image.title="clinsafe" \
      org.opencontainers.image.description="Is an embedding model or a RAG system safe to put in front of a clinician?" \
      org.opencontainers.image.licenses="Apache-2.0"
# Pango draws the PDF. Its versions are the distribution's, which mends them; the image is rebuilt for that.
# hadolint ignore=DL3008
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends libharfbuzz-subset0 libpango-1.0-0 libpangoft2-1.0-0 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 clinsafe \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin clinsafe \
    && install -d -o 10001 -g 10001 -m 0700 /data
COPY --from=build /opt/clinsafe /opt/clinsafe
# Whatever is written goes to /data (runs, keys, models that are fetched) or /tmp; nothing else needs to be writable.
ENV PATH=/opt/clinsafe/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/data \
    XDG_CONFIG_HOME=/data/config \
    XDG_CACHE_HOME=/data/cache \
    HF_HOME=/data/models \
    MPLCONFIGDIR=/tmp/matplotlib
USER 10001:10001
WORKDIR /data
VOLUME ["/data"]
ENTRYPOINT ["clinsafe"]
CMD ["--help"]
