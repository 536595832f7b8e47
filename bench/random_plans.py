#!/usr/bin/env python3
"""Random models with random limits on memory: what plans promise, and what they refuse.

    bench/random_plans.py SEED COUNT [--keep]

Model SEED, SEED+1, ... (random_models.py) is planned for some schedule or method, number of
devices, replicas and policy of recomputation, all drawn from the number, without a limit and with
limits that fall from what it then needs. Of a plan that is made,

- no device has more than the limit, and the program allocates what the report states;
- losses are those without a limit, to the last bit; where replicas are planned, or cuts under a
  method that never drains, those of the replay (--verify).

Of a plan that is refused for its memory (exit status 3) other ways are tried to keep the limit: all
cuts into two stages, and policies of recomputation for some sets of nodes. Where one of them fits,
the refusal was wrong. Failures keep their folder; so does everything with --keep. Needs torch and
onnx.
"""

import random
import sys

import numpy
import onnx

import measure
import plan_reports
import random_models
from architectures_export import freeze_flags
from random_models import Failed

STEPS, MOST_SETS = 2, 24
#  Flags, and whether numbers depend on the plan.
PLANS = ((["--stages=2"], False), (["--stages=3", "--schedule=gpipe"], False),
         (["--stages=3", "--schedule=zb-h1"], False),
         (["--stages=4", "--devices=2", "--schedule=interleaved:chunks=2"], False),
         (["--stages=2", "--method=pipedream"], False), (["--stages=2", "--method=2bw"], False),
         (["--stages=auto", "--devices=2"], False), (["--stages=auto", "--devices=2"], False),
         (["--stages=auto", "--devices=3", "--schedule=gpipe"], False),
         (["--stages=auto", "--devices=2", "--schedule=zb-v"], False),
         (["--stages=auto", "--devices=2", "--method=pipedream"], True),
         (["--stages=auto", "--devices=4", "--replicas=auto"], True),
         (["--stages=auto", "--devices=4", "--replicas=2"], True),
         (["--stages=auto", "--devices=4", "--replicas=auto", "--schedule=interleaved"], True),
         (["--stages=auto", "--devices=4", "--replicas=auto", "--method=2bw"], True))


class Planner:
    """Compiles and trains the model of a folder."""

    def __init__(self, case, folder):
        self.case, self.folder = case, folder
        self.flags = [f"--microbatch-size={case.batch}", f"--loss={case.loss}",
                      f"--microbatches={random_models.MICROBATCHES}",
                      f"--optimizer={case.optimizer}",
                      *freeze_flags(case.module, folder / "model.onnx", case.exporter)]

    def compile(self, *flags):
        """The exit status, the stages or the message, and the bytes of the largest device."""
        status, stages = plan_reports.compile_plan(
            [measure.build_folder() / "bin" / "penstockc", self.folder / "model.onnx", *self.flags],
            self.folder / "program", *flags)
        if status not in (0, 1, plan_reports.DOES_NOT_FIT):
            raise Failed(f"{' '.join(flags)}: exit status {status}: {stages[-300:]}")
        return status, stages, None if status else max(plan_reports.arenas(stages).values())

    def train(self, stages, *flags):
        losses, allocated, said = plan_reports.train(
            self.folder / "program", "--data", f"x={self.folder / 'x.npy'}", "--labels",
            self.folder / "labels.npy", "--steps", str(STEPS), *flags)
        compared = plan_reports.compare(allocated, stages)
        if compared != "equal":
            raise Failed(f"it allocates other bytes than the plan: {compared}")
        if flags and "bitwise equal" not in said:
            raise Failed(f"not verified: {said}")
        return losses

    def find_fitting(self, plan, policy, limit, draw):
        """Flags of a plan that fits, though none was found; or None."""
        nodes = [node.name for node in onnx.load(self.folder / "model.onnx",
                                                 load_external_data=False).graph.node]
        ways = [plan]
        if plan[:2] == ["--stages=auto", "--devices=2"]:
            ways = [[f"--split-at={name}", *plan[2:]] for name in nodes]
        elif plan[0] == "--stages=auto":
            return None
        policies = [policy]
        if policy == "--recompute=auto":
            sets = [draw.sample(nodes, draw.randint(1, len(nodes))) for _ in range(MOST_SETS)]
            policies = ["--recompute=none", "--recompute=full",
                        *(f"--recompute=^({'|'.join(names)})$" for names in sets)]
            if len(ways) > 1:
                policies = policies[:2]
        for way in ways:
            for other in policies:
                status, _, need = self.compile(*way, other, "--emit=program")
                if status == 0 and need <= limit:
                    return f"{' '.join(way)} {other}"
        return None


def check(planner, draw):
    plan, is_own = draw.choice(PLANS)
    policy = f"--recompute={draw.choice(['none', 'auto', 'auto', 'auto', 'full'])}"
    name = f"{' '.join(plan)} {policy}"
    status, stages, most = planner.compile(*plan, policy if "auto" not in policy else
                                           "--recompute=none")
    if status:
        return f"{name} refused: {stages.strip()}"
    verify = ["--verify"] if is_own else []
    reference = planner.train(stages, *verify)
    counts = {"fits": 0, "refused": 0}
    for share in (1, draw.uniform(0.9, 1), draw.uniform(0.7, 0.95), draw.uniform(0.4, 0.8)):
        limit = int(most * share)
        how = f"{name} --device-memory={limit}"
        status, stages, need = planner.compile(*plan, policy, f"--device-memory={limit}")
        if status == plan_reports.DOES_NOT_FIT:
            if share == 1:
                raise Failed(f"{how}: refused, and needs no more without a limit")
            other = planner.find_fitting(plan, policy, limit, draw)
            if other:
                raise Failed(f"{how}: refused, but {other} fits: {stages.strip()}")
            counts["refused"] += 1
            continue
        if status:
            raise Failed(f"{how}: {stages.strip()}")
        if need > limit:
            raise Failed(f"{how}: needs {need}")
        losses = planner.train(stages, *verify)
        if not is_own and losses != reference:
            raise Failed(f"{how}: losses {losses}, not {reference}")
        counts["fits"] += 1
    return f"{name}: {counts['fits']} limits kept, {counts['refused']} refused"


def run_case(seed, folder):
    """A line, and whether all is well."""
    case = random_models.Case(seed)
    numpy.save(folder / "x.npy", case.inputs.numpy())
    numpy.save(folder / "labels.npy", case.labels.numpy())
    problem = random_models.try_export(case, folder)
    if problem:
        return f"{seed} | {case} | not exported: {problem}", True
    try:
        return f"{seed} | {case} | {check(Planner(case, folder), random.Random(seed))}", True
    except (Failed, SystemExit) as failed:
        return f"{seed} | {case} | FAILED: {failed}", False


if __name__ == "__main__":
    random_models.main(sys.argv[1:], __doc__, "random_plans", run_case)
