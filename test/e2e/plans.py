"""The schedules and methods of a compiler, for scripts that sweep over them.

Their names are what `penstockc --help` lists, so that none is forgotten. Only
what is special about some of them stands here.
"""

import re
import subprocess

# Stages that a device has under some schedules; under the others, one.
STAGES_PER_DEVICE = {"interleaved": 2, "looped-bfs": 2, "zb-v": 2, "v-half": 2, "v-min": 2,
                     "dualpipe-v": 2, "hanayo": 2, "chimera": 2}
# Brings its replicas along: two of each stage.
BIDIRECTIONAL = "chimera"
# Other ways of a method.
VARIANTS = {"pipedream": ["pipedream:vertical-sync"],
            "pipemare": ["pipemare:anneal-steps=6,warmup-steps=2"]}


def listed(penstockc, option):
    """The names in the help of an option, up to its first remark."""
    text = subprocess.run([penstockc, "--help"], check=True, capture_output=True,
                          text=True).stdout
    names = re.search(rf"^ +--{option}=<string> +- [^:]+: (.+?)(?: \(|; |$)", text, re.M)
    return names[1].split(", ")


def schedules(penstockc):
    """How to write each schedule."""
    return listed(penstockc, "schedule")


def stages_per_device(schedule):
    return STAGES_PER_DEVICE.get(schedule.split(":")[0], 1)


def methods(penstockc):
    """How to write each asynchronous method, and its variants."""
    return [text for name in listed(penstockc, "method") if name != "sync"
            for text in (name, *VARIANTS.get(name, []))]
