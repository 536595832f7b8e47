"""A run on two hosts, which are network namespaces of this machine with a cable
between them: as it is, slow, losing packets, and cut while it trains.

usage: hosts.py EXECUTABLE FOLDER ARGUMENT...

The arguments are for the executable, without --steps and --log. Prints a line for
each case, or that the kernel has not what a case needs; exit code 1 if a run was
otherwise than it should be. Exit code 77: no namespaces here.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

from kill import find_processes
from transports import ENVIRONMENT, LAUNCHERS, read_log

HOSTS = {"10.213.7.1": "a", "10.213.7.2": "b"}
LIMIT = 30


def call(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


class Cable:
    """Two hosts, which stay until it is closed."""

    def __init__(self, folder):
        self.names = {end: f"penstock-{os.getpid()}-{end}"
                      for end in HOSTS.values()}
        made = [call("ip", "netns", "add", name, check=False)
                for name in self.names.values()]
        if any(result.returncode for result in made):
            self.close()
            print("skipped: no network namespaces:", made[0].stderr.strip())
            sys.exit(77)
        a, b = self.names.values()
        call("ip", "-n", a, "link", "add", "va", "type", "veth", "peer", "name",
             "vb", "netns", b)
        for address, end in HOSTS.items():
            name = self.names[end]
            call("ip", "-n", name, "address", "add", f"{address}/24", "dev",
                 f"v{end}")
            for device in ("lo", f"v{end}"):
                call("ip", "-n", name, "link", "set", device, "up")
        # What starts a process on a host, in place of ssh.
        self.agent = folder / "agent.sh"
        self.agent.write_text(
            "#!/bin/sh\nhost=$1; shift\ncase $host in\n"
            + "".join(f"{address}) name={end};;\n"
                      for address, end in HOSTS.items())
            + f"esac\nexec ip netns exec penstock-{os.getpid()}-$name "
              "unshare -u sh -c \"hostname node-$name; $*\"\n")
        self.agent.chmod(0o755)

    def shape(self, *rule):
        """Makes both ways of the cable slow; False where the kernel cannot."""
        results = [call("tc", "-n", self.names[end], "qdisc", "replace", "dev",
                        f"v{end}", "root", *rule, check=False)
                   for end in HOSTS.values()]
        return not any(result.returncode for result in results)

    def cut(self):
        call("ip", "-n", self.names["a"], "link", "set", "va", "down")

    def start(self, command, errors):
        network = "10.213.7.0/24"
        launch = [LAUNCHERS["openmpi"], "-n", "2", "--host",
                  ",".join(f"{address}:1" for address in HOSTS),
                  "--mca", "plm_rsh_agent", str(self.agent),
                  "--mca", "btl", "tcp,self",
                  "--mca", "btl_tcp_if_include", network,
                  "--mca", "oob_tcp_if_include", network, *command]
        return subprocess.Popen(
            ["ip", "netns", "exec", self.names["a"], "unshare", "-u", "sh", "-c",
             'hostname node-a; exec "$0" "$@"', *map(str, launch)],
            env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=errors)

    def close(self):
        """The launcher's daemon on a host that it cannot reach stays."""
        for name in self.names.values():
            left = call("ip", "netns", "pids", name, check=False).stdout
            for pid in left.split():
                os.kill(int(pid), signal.SIGKILL)
        for name in self.names.values():
            call("ip", "netns", "del", name, check=False)


def train(cable, folder, program, name, steps):
    """Returns the log of a run that has to end well, and its seconds."""
    log, errors = folder / f"{name}.jsonl", folder / f"{name}.txt"
    begin = time.monotonic()
    with errors.open("w") as stream:
        process = cable.start([*program, "--steps", steps, "--log", log], stream)
        code = process.wait(timeout=240)
    if code:
        sys.exit(f"{name}: exit code {code}\n{errors.read_text()}")
    return read_log(log), time.monotonic() - begin


def cut(cable, folder, program):
    log, errors = folder / "cut.jsonl", folder / "cut.txt"
    with errors.open("w") as stream:
        process = cable.start([*program, "--steps", "1000000000", "--log", log],
                              stream)
    end = time.monotonic() + 60
    while not (log.exists() and log.stat().st_size):
        if process.poll() is not None or time.monotonic() > end:
            sys.exit("cut: the run did not start\n" + errors.read_text())
        time.sleep(0.01)
    executable = os.path.realpath(program[0])
    if len(find_processes(executable)) != 2:
        sys.exit("cut: there are no two processes")
    begin = time.monotonic()
    cable.cut()
    while find_processes(executable):
        if time.monotonic() - begin > LIMIT:
            process.kill()
            sys.exit(f"cut: a process is left\n{errors.read_text()}")
        time.sleep(0.02)
    seconds = time.monotonic() - begin
    try:
        code = process.wait(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        code = "none: the launcher waits for its host"
    line = [line for line in errors.read_text().splitlines()
            if line.startswith("error: ")]
    if not line or "no sign of life" not in line[0]:
        sys.exit(f"cut: no line says it\n{errors.read_text()}")
    print(f"cut: both had ended after {seconds:.1f} s, code {code}\n{line[0]}")


def main():
    executable, folder, *arguments = sys.argv[1:]
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    program = [os.path.realpath(executable), *arguments]
    alone = folder / "alone.jsonl"
    subprocess.run([*program, "--steps", "12", "--log", alone], check=True,
                   capture_output=True)
    expected = read_log(alone)
    cable = Cable(folder)
    try:
        for name, rule in (("plain", None),
                           ("slow", ("tbf", "rate", "1mbit", "burst", "16kb",
                                     "latency", "500ms")),
                           ("losing", ("netem", "loss", "5%"))):
            if rule and not cable.shape(*rule):
                print(f"{name}: skipped, this kernel has no {rule[0]}")
                continue
            found, seconds = train(cable, folder, program, name, "12")
            if found != expected:
                sys.exit(f"{name}: other losses than those of one process")
            print(f"{name}: 12 updates in {seconds:.1f} s, the losses of one "
                  "process", flush=True)
        for end in HOSTS.values():
            call("tc", "-n", cable.names[end], "qdisc", "del", "dev", f"v{end}",
                 "root", check=False)
        cut(cable, folder, program)
    finally:
        cable.close()


main()
