"""`python -m ottla.sim`: replay one seed verbosely, or try random seeds for a while and keep those that fail."""

from __future__ import annotations

import argparse
import pathlib
import random
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from ottla.sim.answering import AnsweringSimulation, answering
from ottla.sim.coordinated import CoordinatedSimulation, coordinated
from ottla.sim.replicated.run import ClusterSimulation
from ottla.sim.replicated.scenario import clustered, topical
from ottla.sim.run import Outcome, Simulation
from ottla.sim.scenario import scenario
from ottla.sim.seeds import keep_seed
from ottla.sim.topics.run import TopicSimulation, changing
from ottla.sim.transacting import TransactionSimulation, transacting

SEED_MAX = 10**9
Tell = Callable[[str], None]


class SimulationKind(NamedTuple):
    """A kind of simulation, and where its seeds that failed are kept."""

    seeds_file: pathlib.Path
    simulate: Callable[[int, Tell | None], Outcome]


_TESTS = pathlib.Path("tests/sim")
KINDS = {
    "records": SimulationKind(_TESTS / "seeds.txt", lambda seed, tell: Simulation(scenario(seed), tell).run()),
    "transactions": SimulationKind(
        _TESTS / "transacting_seeds.txt", lambda seed, tell: TransactionSimulation(transacting(seed), tell).run()
    ),
    "topics": SimulationKind(
        _TESTS / "topics" / "topics_seeds.txt", lambda seed, tell: TopicSimulation(changing(seed), tell).run()
    ),
    "cluster-topics": SimulationKind(
        _TESTS / "replicated" / "cluster_topics_seeds.txt",
        lambda seed, tell: ClusterSimulation(topical(seed), tell).run(),
    ),
    "answers": SimulationKind(
        _TESTS / "answers_seeds.txt", lambda seed, tell: AnsweringSimulation(answering(seed), tell).run()
    ),
    "cluster": SimulationKind(
        _TESTS / "replicated" / "cluster_seeds.txt", lambda seed, tell: ClusterSimulation(clustered(seed), tell).run()
    ),
    "coordinated": SimulationKind(
        _TESTS / "coordinated_seeds.txt", lambda seed, tell: CoordinatedSimulation(coordinated(seed), tell).run()
    ),
}


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    if options.seed is not None:
        kind = KINDS[options.kind or "records"]
        if options.runs is None:
            return _replay(kind, options.seed, quiet=options.quiet)
        return max(_replay(kind, options.seed + number, quiet=True) for number in range(options.runs))
    return _search([options.kind] if options.kind else list(KINDS), options.count, options.seconds, options.seeds_file)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ottla.sim", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this seed and tell what happens")
    parser.add_argument("--runs", type=int, help="replay so many seeds, from --seed on, without their stories")
    parser.add_argument("--kind", choices=KINDS, help="of simulation; default: records for a replay, else all in turn")
    parser.add_argument("--quiet", action="store_true", help="replay without the story")
    parser.add_argument("--count", type=int, default=1000, help="random seeds to try at most (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="time to spend at most (default %(default)s)")
    parser.add_argument("--seeds-file", type=pathlib.Path, help="where failing seeds are kept")
    return parser.parse_args(arguments)


def _replay(kind: SimulationKind, seed: int, *, quiet: bool) -> int:
    outcome = kind.simulate(seed, None if quiet else print)
    _report(outcome)
    return 0 if outcome.ok else 1


def _search(kinds: list[str], count: int, seconds: float, seeds_file: pathlib.Path | None) -> int:
    chance = random.SystemRandom()
    until = time.monotonic() + seconds
    failing: list[tuple[str, Outcome]] = []
    tried = 0
    while tried < count and time.monotonic() < until:
        name = kinds[tried % len(kinds)]
        outcome = KINDS[name].simulate(chance.randrange(SEED_MAX), None)
        tried += 1
        if not outcome.ok:
            failing.append((name, outcome))
            keep_seed(seeds_file or KINDS[name].seeds_file, outcome.seed, outcome.violations[0].splitlines()[0][:100])
            _report(outcome)
        _show_progress(tried, count, len(failing), until - time.monotonic())
    print(f"\n{tried} simulations, {len(failing)} failed")
    for name, outcome in failing:
        print(f"  make sim KIND={name} SEED={outcome.seed}    {outcome.violations[0].splitlines()[0]}")
    return 1 if failing else 0


def _report(outcome: Outcome) -> None:
    print(f"\nseed {outcome.seed}: {outcome.virtual_seconds:.1f} virtual seconds, trace {outcome.trace}")
    print("  " + ", ".join(f"{what}: {count}" for what, count in outcome.facts.items()))
    for violation in outcome.violations:
        print(f"  VIOLATION {violation}")
    if outcome.ok:
        print("  all claims hold")


def _show_progress(tried: int, count: int, failed: int, left_seconds: float) -> None:
    line = f"{tried} of at most {count} simulations, {failed} failed, {max(0.0, left_seconds):.0f} s left"
    if sys.stdout.isatty():
        print(f"\r{line}   ", end="", flush=True)
    elif tried % 20 == 0:
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
