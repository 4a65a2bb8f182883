#!/usr/bin/env python3
"""Puts faults into the sources, one at a time, and reports which of them the tests do not notice.

    tests/mutations/run.py                     all faults
    tests/mutations/run.py kernels sgd.cpp     those whose file or description contains one of the words
    tests/mutations/run.py --list              only whether each fault's text still stands in its file, once

The faults stand in the *.txt files beside this script:

    == engine/ops/losses.cpp           the file, for the faults that follow

    what the fault breaks              a line of words
    - the text that stands there       lines of the source, or a part of one; found once in the file, whatever its
    + the text that takes its place    white space; of several lines each begins with the sign; `+` alone deletes

Works in copies of the tree under build/mutations, of which each has a build of its own: the tree itself is never
touched. A run that was stopped goes on where it was: what has been noticed is not tried again, unless --again says so.
Ends with status 1 when a fault survives, does not compile or is not found.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "mutations"
RESULTS = WORK / "results.json"


@dataclasses.dataclass(frozen=True)
class Fault:
    file: str
    what: str
    old: str
    new: str

    def apply(self, text):
        """The file's text with the fault in it, or None where the old text does not stand there exactly once."""
        pattern = r"\s+".join(re.escape(word) for word in self.old.split())
        changed, count = re.subn(pattern, lambda _: self.new, text)
        return changed if count == 1 else None


def read_faults(path):
    """The faults of a list, in its order."""
    faults, file, what, old, new = [], None, None, [], []

    def finish():
        if what is not None:
            faults.append(Fault(file, what, "\n".join(old), "\n".join(new)))

    for line in path.read_text().splitlines() + [""]:
        if line.startswith("== "):
            file = line[3:].strip()
        elif line.startswith("-"):
            old.append(line[2:])
        elif line.startswith("+"):
            new.append(line[2:])
        elif not line.strip():
            finish()
            what, old, new = None, [], []
        elif not line.startswith("#"):
            what = line.strip()
    return faults


class Copy:
    """A copy of the tree with its build, in the place that the preset gives it: ccache knows what it compiles there."""

    def __init__(self, number):
        self.source = WORK / f"copy{number}"
        self.build = self.source / "build" / "release"
        self.update_source()
        subprocess.run(["cmake", "--preset", "release"], cwd=self.source, check=True, stdout=subprocess.DEVNULL)
        failed = self.compile()
        start = time.monotonic()
        failed = failed or self.test(limit=3600)
        if failed:
            sys.exit(f"without any fault: {failed}")
        self.limit = 60 + 5 * (time.monotonic() - start)  # a loop without end is noticed too

    def update_source(self):
        """Writes only what differs, so that a build from before stays good."""
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True,
                                capture_output=True, text=True).stdout
        files = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
        for name in files:
            target, content = self.source / name, (ROOT / name).read_bytes()
            if not target.exists() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, target)
        for path in list(self.source.rglob("*")):
            name = path.relative_to(self.source)
            if path.is_file() and name.parts[0] != "build" and str(name) not in files:
                path.unlink()

    def compile(self):
        """None, or why the build fails."""
        done = subprocess.run(["cmake", "--build", self.build, "-t", "tapegrad_tests"], capture_output=True, text=True)
        errors = re.findall(r"^.*\berror\b.*$", done.stdout, re.MULTILINE)
        return None if done.returncode == 0 else "does not compile: " + (errors or [done.stdout])[0][:200]

    def test(self, limit):
        """None, or which test case fails first, and its file."""
        try:
            done = subprocess.run([self.build / "tests" / "tapegrad_tests", "--abort-after=1", "--no-colors"],
                                  capture_output=True, text=True, errors="replace", timeout=limit)
        except subprocess.TimeoutExpired:
            return f"does not end within {limit:.0f} s"
        if done.returncode == 0:
            return None
        case = re.search(r"([\w.]+):\d+:\nTEST CASE: +(.*)", done.stdout)
        return f"{case[1]}: {case[2]}" if case else f"status {done.returncode}"

    def try_fault(self, fault):
        path = self.source / fault.file
        before = path.read_text()
        try:
            path.write_text(fault.apply(before))
            return self.compile() or self.test(self.limit) or "SURVIVES"
        finally:
            path.write_text(before)


def failed(verdict):
    return verdict == "SURVIVES" or verdict.startswith("does not compile")


def print_table(rows, widths):
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip(), flush=True)


def try_all(faults, jobs, widths):
    """Tries the faults on several copies, prints what becomes of each, and keeps it for the next run."""
    copies = queue.Queue()
    for number in range(jobs):
        copies.put(Copy(number))
    lock = threading.Lock()
    results = read_results()

    def work(fault):
        copy = copies.get()
        try:
            verdict = copy.try_fault(fault)
        finally:
            copies.put(copy)
        with lock:
            results[repr(fault)] = verdict
            RESULTS.write_text(json.dumps(results, indent=1))
            print_table([(fault.file, fault.what, verdict)], widths)
        return verdict

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(work, faults))


def read_results():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only faults whose file or description contains one of these")
    parser.add_argument("--jobs", type=int, default=1, help="how many copies of the tree are at work")
    parser.add_argument("--again", action="store_true", help="try also what was noticed in an earlier run")
    parser.add_argument("--list", action="store_true", help="try nothing")
    options = parser.parse_args()

    faults = [fault for path in sorted(pathlib.Path(__file__).parent.glob("*.txt")) for fault in read_faults(path)]
    faults = [fault for fault in faults
              if not options.words or any(word in fault.file or word in fault.what for word in options.words)]
    widths = [max((len(text) for text in column), default=0)
              for column in zip(*((fault.file, fault.what, "") for fault in faults))]
    lost = [fault for fault in faults if fault.apply((ROOT / fault.file).read_text()) is None]
    print_table([(fault.file, fault.what, "is not there, or more than once") for fault in lost], widths)
    if options.list:
        return len(lost) > 0

    WORK.mkdir(parents=True, exist_ok=True)
    known = {} if options.again else read_results()
    faults = [fault for fault in faults if fault not in lost]
    left = [fault for fault in faults if failed(known.get(repr(fault), "SURVIVES"))]
    verdicts = try_all(left, options.jobs, widths) if left else []
    survivors = [(fault.file, fault.what, verdict) for fault, verdict in zip(left, verdicts) if failed(verdict)]
    print(f"\n{len(faults) - len(survivors)} of {len(faults)} faults noticed, {len(faults) - len(left)} of them in an "
          f"earlier run; {len(lost)} not found" + (". Not noticed:" if survivors else ""))
    print_table(survivors, widths)
    return len(survivors) + len(lost) > 0


if __name__ == "__main__":
    sys.exit(main())
