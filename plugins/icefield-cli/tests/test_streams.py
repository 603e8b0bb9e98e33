"""The command as a process: outputs that are closed or full, and interrupts at any time."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import icefield
import pyarrow as pa
import pytest

COMMAND = [sys.executable, "-m", "icefield_cli.main"]
INTERRUPTED = b"icefield: interrupted\n"


@pytest.fixture
def many(catalog: icefield.Catalog, properties: dict[str, str]) -> list[str]:
    """The arguments of a command that prints many rows."""
    table = catalog.create_table("db.many", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(100_000)}))
    options = [part for key, value in properties.items() for part in ("-p", f"{key}={value}")]
    return ["scan", "db.many", "--all", "--output", "json", "--catalog", "test", *options]


def shell(arguments: Sequence[str], redirection: str) -> subprocess.CompletedProcess[bytes]:
    script = f'exec "$@" {redirection}'
    return subprocess.run(["/bin/sh", "-c", script, "sh", *COMMAND, *arguments], capture_output=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [None, ["--version"], ["--help"], ["plugins"]], ids=str)
def test_a_full_output_is_one_line_and_status_1(many, arguments):
    ran = shell(arguments or many, ">/dev/full")
    assert (ran.returncode, ran.stderr) == (1, b"icefield: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("arguments", [None, ["--version"], ["plugins"]], ids=str)
def test_a_closed_output_is_one_line_and_status_1(many, arguments):
    ran = shell(arguments or many, ">&-")
    assert (ran.returncode, ran.stderr) == (1, b"icefield: the standard output is closed, and nothing was done\n")


@pytest.mark.slow
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&-", "<&- 2>&-"])
def test_an_error_that_nobody_reads_is_not_printed_elsewhere(many, redirection):
    missing = ["db.none" if each == "db.many" else each for each in many]
    ran = shell(missing, redirection)
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert ran.stderr == b"" if "2>" in redirection else ran.stderr.count(b"\n") == 1
    whole = shell(many, redirection)
    assert (whole.returncode, whole.stdout.count(b"\n"), whole.stderr) == (0, 100_000, b"")


@pytest.mark.slow
@pytest.mark.parametrize("lines", [0, 1, 1_000])
def test_a_reader_that_has_seen_enough_ends_the_command_quietly(many, lines):
    with subprocess.Popen([*COMMAND, *many], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(lines):
            process.stdout.readline()
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


@pytest.mark.slow
def test_an_interrupt_at_any_time_is_one_line_and_status_130(many):
    # Sent when the script has begun: what Python does before that is beyond it.
    started = (
        "import sys, icefield_cli.main as started; signal = started.signal.signal; "
        "started.signal.signal = lambda *given: (signal(*given), sys.stderr.write('.'), sys.stderr.flush(), "
        "setattr(started.signal, 'signal', signal)); sys.exit(started.main())"
    )
    ends = set()
    for number in range(12):
        with subprocess.Popen(
            [sys.executable, "-c", started, *many], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stderr is not None
            assert process.stdout is not None
            assert process.stderr.read(1) == b"."
            time.sleep(0.02 + 0.15 * number)
            os.kill(process.pid, signal.SIGINT)
            process.stdout.read()
            found = (process.stderr.read(), process.wait())
        assert found in {(INTERRUPTED, 130), (b"", 0)}, number
        ends.add(found[1])
    assert 130 in ends


@pytest.mark.parametrize("part", ["icefield_cli.command_line", "icefield.catalog", "pyarrow", "numpy"])
def test_an_interrupt_while_a_library_is_imported_is_one_line_and_status_130(many, part):
    interrupting = f"""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {part!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from icefield_cli.main import main
sys.exit(main())
"""
    ran = subprocess.run([sys.executable, "-c", interrupting, *many], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, b"", INTERRUPTED)


@pytest.mark.slow
def test_an_interrupt_in_a_destructor_is_not_lost(many):
    interrupting = """
import os, signal, sys
class Held:
    def __del__(self):
        raise KeyboardInterrupt
from icefield.scan import TableScan
plan = TableScan.plan_files
def planning(self, **options):
    Held()
    import time
    time.sleep(5)
    return plan(self, **options)
TableScan.plan_files = planning
from icefield_cli.main import main
sys.exit(main())
"""
    ran = subprocess.run([sys.executable, "-c", interrupting, *many], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, b"", INTERRUPTED)


@pytest.mark.slow
def test_an_interrupted_report_is_one_line_and_leaves_the_page_before_it(many, tmp_path):
    """The interrupt comes in the middle of the page."""
    interrupting = """
import os, pathlib, signal, sys, time
def interrupted(path, text, *options):
    path.write_bytes(text[:1000].encode())
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20)
pathlib.Path.write_text = interrupted
from icefield_cli.main import main
sys.exit(main())
"""
    (tmp_path / "pages").mkdir()
    page = tmp_path / "pages" / "page.html"
    page.write_bytes(b"the old page")
    arguments = ["report", "db.many", "-o", str(page), *many[many.index("--catalog") :]]
    ran = subprocess.run([sys.executable, "-c", interrupting, *arguments], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, b"", INTERRUPTED)
    assert [(each.name, each.read_bytes()) for each in page.parent.iterdir()] == [("page.html", b"the old page")]


@pytest.mark.slow
def test_interrupted_changes_are_one_line_and_status_130(many):
    arguments = ["changes", "db.many", "--all", "--output", "json", *many[many.index("--catalog") :]]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        process.stdout.read()
        assert (process.stderr.read(), process.wait()) == (INTERRUPTED, 130)
