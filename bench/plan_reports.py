"""What scripts and tests ask of plans: compile, and read what the report states.

    compile_plan([penstockc, MODEL, ..], program, *flags) -> exit status, stages or message
    arenas(stages) -> bytes by device
    train(program, *flags) -> losses, what each device has allocated, what was printed

Needs nothing but Python.
"""

import json
import pathlib
import subprocess

#  The parts of a stage; over the stages of a device they sum up to its arena.
PARTS = ("weights", "versions", "gradients", "optimizer", "residuals", "temporaries",
         "channels", "padding")
#  Those that a program counts for itself.
VARIABLES = ("weights", "versions", "gradients", "optimizer")
DOES_NOT_FIT = 3


def compile_plan(command, program, *flags):
    """The exit status, then the stages of the report, or what the compiler said."""
    report = pathlib.Path(program).with_suffix(".report.json")
    report.unlink(missing_ok=True)
    result = subprocess.run([*command, "-o", program, *flags, f"--report-json={report}"],
                            capture_output=True, text=True)
    if result.returncode:
        return result.returncode, result.stderr
    return 0, json.loads(report.read_text())["stages"]


def compiled(command, program, *flags):
    """The stages; an error is the end."""
    status, stages = compile_plan(command, program, *flags)
    if status:
        raise SystemExit(f"{' '.join(map(str, (*command, *flags)))}\n{stages}"
                         f"exit status {status}")
    return stages


def by_device(stages):
    """The bytes of all stages of a device that is the first of some; what it has as a whole stands
    at the first stage."""
    devices = {}
    for stage in stages:
        devices.setdefault(stage["device"], []).append(stage["bytes"])
    return devices


def arenas(stages):
    return {device: bytes for stage in stages
            for device, bytes in zip(stage["devices"], stage["arenas"])}


def train(program, *flags):
    """Runs a program with a log: its losses, what its devices have allocated, and what it says."""
    log, memory = (pathlib.Path(program).with_suffix(kind)
                   for kind in (".log.jsonl", ".memory.json"))
    for path in (log, memory):
        path.unlink(missing_ok=True)
    command = [program, *flags, "--log", log, "--memory", memory]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{result.stderr}"
                         f"exit status {result.returncode}")
    losses = [json.loads(line).get("loss") for line in log.read_text().splitlines()]
    return losses, json.loads(memory.read_text())["devices"], result.stdout


def compare(allocated, stages):
    """"equal", or the first number in which a program differs from its plan."""
    plan = arenas(stages)
    if [device["device"] for device in allocated] != sorted(plan):
        return f"arenas of devices {[device['device'] for device in allocated]}"
    for device, parts in by_device(stages).items():
        if sum(b[part] for b in parts for part in PARTS) != plan[device]:
            return f"parts of the arena of device {device}"
    for device in allocated:
        if device["arena"] != plan[device["device"]]:
            return f"arena of device {device['device']}: {device['arena']}"
        for real in device["stages"]:
            stated = stages[real["stage"]]["bytes"]
            for part in VARIABLES:
                if real[part] != stated[part]:
                    return f"{part} of stage {real['stage']}: {real[part]}, not {stated[part]}"
    return "equal"
