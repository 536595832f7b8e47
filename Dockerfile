# Penstock in an image of Debian 12:
#
#   docker build -t penstock .
#   docker run --rm -v "$PWD:/work" penstock model.onnx -o train --loss=mse
#
# scripts/run-dockerfile.py executes these steps without Docker, in a folder.

FROM debian:12 AS build
WORKDIR /src
COPY . .
RUN scripts/install-dependencies.sh
RUN scripts/package.sh

FROM debian:12
COPY --from=build /src/build/package/penstock_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/penstock_*.deb && rm -rf /tmp/*.deb /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["penstockc"]
