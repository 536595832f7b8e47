"""Starts an executable as torchrun would, with --transport=control: both of two
processes, one of two, one whose port is taken, and both where the agent of
torchrun holds the port itself. Prints what they say.

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


def hold_one_of_two():
    """Listens on a port before one that is free, as an agent does."""
    while True:
        holder = socket.socket()
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with socket.socket() as after:
            try:
                after.bind(("127.0.0.1", port + 1))
                return holder, port
            except (OSError, OverflowError):
                holder.close()


def start(port, ranks, more=None):
    """Runs these ranks of two."""
    processes = [subprocess.Popen(
        [*sys.argv[1:], "--transport=control", "--start-timeout",
         "1" if len(ranks) == 1 else "30"],
        env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2",
             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
             **(more or {})},
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
holder, port = hold_one_of_two()
with holder:
    start(port, [0, 1], {"TORCHELASTIC_USE_AGENT_STORE": "True",
                         "TORCHELASTIC_RUN_ID": "one"})
