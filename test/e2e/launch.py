"""Starts a program as torchrun would, without anything else.

usage: launch.py -n N [--only RANK] [--taken] COMMAND ARGUMENT...

Each of N processes gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, and a
free port of this host as MASTER_PORT. With --only, the others, on other hosts, do
not come; with --taken, somebody else listens at that port. Ends with the first exit code that is
not 0, when all have ended.
"""

import argparse
import os
import socket
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-n", type=int, required=True)
    parser.add_argument("--only", type=int)
    parser.add_argument("--taken", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    port = holder.getsockname()[1]
    if options.taken:
        holder.listen()
    else:
        holder.close()
    ranks = range(options.n) if options.only is None else [options.only]
    processes = [subprocess.Popen(options.command, env={
        **os.environ, "RANK": str(rank), "WORLD_SIZE": str(options.n),
        "LOCAL_RANK": str(local), "LOCAL_WORLD_SIZE": str(len(ranks)),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        for local, rank in enumerate(ranks)]
    codes = [process.wait() for process in processes]
    sys.exit(next((code for code in codes if code), 0) & 255)


if __name__ == "__main__":
    main()
