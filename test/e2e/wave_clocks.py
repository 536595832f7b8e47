"""How far apart the workers of a traced hetpipe run were, next to the bounds.

usage: wave_clocks.py TRACE.json STAGES WAVE DISTANCE

The clock of a worker is the waves that all of its stages push or have pushed; two are at
most D + 1 apart at any time. A microbatch reads weights with some own waves, and
misses at most D of them of others: those that are not folded in by then, on the
first stage. Exit code 1 if that is not so, or if the trace holds nothing.
"""

import collections
import json
import sys


def main():
    path, stages, wave, distance = sys.argv[1], *map(int, sys.argv[2:])
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    rows = {event["tid"]: int(event["args"]["name"].split()[1])
            for event in events if event["name"] == "thread_name"}
    actions = [(event["ts"], event["ts"] + event["dur"], event["name"][0],
                int(event["name"][1:]), rows[event["tid"]])
               for event in events if event.get("cat") == "action"]

    # 1. A wave of a worker is pushed when its last stage begins to: the end of the
    # action is seen late where those that wait for the wave take the core.
    pushed = collections.defaultdict(list)
    for begin, _, letter, number, stage in actions:
        if letter == "P":
            pushed[stage // stages, number].append(begin)
    clocks = collections.Counter()
    workers = {worker for worker, _ in pushed}
    furthest = 0
    for (worker, _), begins in sorted(pushed.items(), key=lambda item: max(item[1])):
        assert len(begins) == stages, (worker, len(begins))
        clocks[worker] += 1
        if clocks[worker] == max(number for _, number in pushed) + 1:
            break
        furthest = max(furthest, clocks[worker] - min(clocks[other] for other in workers))

    # 2. What is folded in when a microbatch reads.
    missing = 0
    for worker in workers:
        first = [action for action in sorted(actions) if action[4] == worker * stages]
        folded = 0
        for _, _, letter, number, _ in first:
            if letter == "S":
                folded += 1
            elif letter == "F":
                own = max(0, number - (wave - 1)) // wave
                missing = max(missing, own - folded)
    print(f"{len(workers)} workers, {max(clocks.values())} waves: clocks at most "
          f"{furthest} of {distance + 1} apart, at most {missing} of {distance} "
          "waves missing")
    return not workers or furthest > distance + 1 or missing > distance


if __name__ == "__main__":
    sys.exit(main())
