"""Starts an executable as torchrun would, with --transport=control: both of two
processes, one of two, and one whose port is taken. Prints what they say.

usage: meet.py EXECUTABLE ARGUMENT...
"""

import os
import socket
import subprocess
import sys


def find_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def start(port, ranks):
    """Runs these ranks of two."""
    processes = [subprocess.Popen(
        [*sys.argv[1:], "--transport=control", "--start-timeout",
         "1" if len(ranks) == 1 else "30"],
        env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2",
             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in ranks]
    texts = [process.communicate(timeout=60)[0] for process in processes]
    print("".join(texts), end="")
    print("codes", *(process.returncode for process in processes))


start(find_port(), [0, 1])
start(find_port(), [0])
with socket.socket() as holder:
    holder.bind(("127.0.0.1", 0))
    holder.listen()
    start(holder.getsockname()[1], [0])
