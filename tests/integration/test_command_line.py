"""The command line as people type it: real processes, exit codes, what is printed where."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from diagnostics.recording.reader import RecordingReader


@pytest.fixture
def page87(tmp_path):
    environment = {**os.environ, "PAGE87_RECORDINGS": str(tmp_path / "recordings")}

    def run(*words, expect=0):
        done = subprocess.run(
            [sys.executable, "-m", "diagnostics", *map(str, words)],
            cwd=tmp_path,
            env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == expect, (done.stdout, done.stderr)
        return done

    return run


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("A line of the notes.\n" * 1000)
    return path


def write(path, body):
    path.write_text(textwrap.dedent(body))
    return path


def test_a_run_prints_what_a_person_reads_and_where_the_recording_is(page87, notes, tmp_path):
    done = page87("run", "-o", "r.p87", notes)
    assert done.stdout.startswith("notes.txt with text: finished, 6 chunks in ")
    assert "Open it           page87 app r.p87" in done.stdout
    assert (tmp_path / "r.p87").exists()
    assert "finished" in page87("show", "r.p87").stdout


LEAKY = """
    from diagnostics import units

    class Document:
        pages = []

    document = Document()
    for page in units(range(20), kind="page"):
        document.pages.append([str(number) * 40 for number in range(page, page + 3_000)])
    """


def test_a_leak_is_explained_on_the_terminal_and_in_the_json(page87, tmp_path):
    script = write(tmp_path / "job.py", LEAKY)
    said = page87("run", "-o", "r.p87", script).stdout
    verdict = said.index("\nVerdict ")
    assert said.index("Fix\n", verdict) < said.index("\nMemory (RSS)")
    assert "What the resident set is made of" not in said

    shown = page87("show", "r.p87").stdout
    assert said.partition("\nRecording ")[0].strip() in shown
    assert "\nWhat the resident set is made of\n" in shown
    assert "\nLetting go at the end\n" in shown

    result = json.loads(page87("show", "--json", "r.p87").stdout)
    assert result["verdict"]["title"].capitalize() in said
    ledger = result["ledger"]["at_end"]
    assert ledger["python"] > 20 * 3_000 * 40
    # A script has no result to release; malloc_trim exists with glibc only.
    assert result["settlement"][0]["step"] == "collection"


def test_verbose_prints_what_show_prints(page87, notes):
    said = page87("run", "--verbose", "-o", "r.p87", notes).stdout
    told, _, rest = said.partition("\nRecording ")
    assert told == page87("show", "r.p87").stdout.partition("\nRecording ")[0]
    assert "\nLetting go at the end\n" in told
    assert rest.endswith("\nOpen it           page87 app r.p87\n")


def test_a_healthy_run_is_told_in_a_calm_line(page87, tmp_path):
    script = write(
        tmp_path / "job.py",
        """
        from diagnostics import units
        for page in units(range(200), kind="page"):
            text = [str(number) * 40 for number in range(3_000)]
        """,
    )
    said = page87("run", script).stdout
    assert re.search(r"\n\nVerdict           Nothing wrong \((fairly )?sure\)\n\nMemory", said)
    assert "Suspects" not in said


def test_the_json_is_alone_on_standard_output(page87, tmp_path):
    script = write(
        tmp_path / "job.py",
        """
        import sys
        from diagnostics import units
        print("the script's own words", sys.argv[1:])
        for page in units(range(3)):
            pass
        """,
    )
    done = page87("run", "--json", "--engine", "none", script, "--json", "-o", "x")
    result = json.loads(done.stdout)
    assert result["units"]["count"] == 3
    assert result["outcome"] == {
        **result["outcome"],
        "state": "finished",
        "last_unit": 3,
        "error": None,
        "signal": None,
    }
    assert "the script's own words ['--json', '-o', 'x']" in done.stderr


@pytest.mark.parametrize("where", [(), ("--child",)])
def test_no_way_of_printing_gets_into_the_json(page87, tmp_path, where):
    script = write(
        tmp_path / "job.py",
        """
        import atexit, os
        from diagnostics import units
        atexit.register(print, "late words")
        os.system("echo words of a process")
        os.write(1, b"words without Python\\n")
        list(units(range(2)))
        """,
    )
    done = page87("run", "--json", "--engine", "none", *where, script)
    assert json.loads(done.stdout)["units"]["count"] == 2
    for words in ("late words", "words of a process", "words without Python"):
        assert words in done.stderr


def test_options_may_follow_a_document(page87, notes):
    assert json.loads(page87("run", notes, "--engine", "none", "--json").stdout)["format"] == 1
    done = page87("run", notes, "--json", notes, expect=2)
    assert "more than one document" in done.stderr


def test_a_loader_of_your_own(page87, notes, tmp_path):
    write(
        tmp_path / "mine.py",
        """
        def load(path):
            with open(path) as file:
                yield from file
        """,
    )
    result = json.loads(page87("run", "--loader", "mine:load", notes, "--json").stdout)
    assert result["units"]["count"] == 1000
    assert result["document"]["loader"] == "mine:load"


@pytest.mark.parametrize(
    ("body", "status", "state"),
    [
        ("pass", 0, "finished"),
        ("1 / 0", 3, "raised"),
        ("raise SystemExit(5)", 3, "exited"),
        ("import os; os._exit(9)", 3, "exited"),
        ("import os; os.kill(os.getpid(), 9)", 4, "killed"),
    ],
)
def test_exit_codes_of_a_child(page87, tmp_path, body, status, state):
    script = write(tmp_path / "job.py", body)
    done = page87("run", "--child", "--engine", "none", "--json", script, expect=status)
    assert json.loads(done.stdout)["outcome"]["state"] == state


def test_exit_codes_in_this_process(page87, tmp_path):
    page87("run", write(tmp_path / "a.py", "1 / 0"), expect=3)
    page87("run", write(tmp_path / "b.py", "raise SystemExit(5)"), expect=3)
    page87("run", write(tmp_path / "c.py", "raise SystemExit(0)"), expect=0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "missing.pdf"), "missing.pdf"),
        (("run", "--loader", "pdfplumbr", "notes.txt"), "Did you mean pdfplumber"),
        (("run", "--loader", "no_such:load", "notes.txt"), "no_such"),
        (("run", "--engine", "exakt", "notes.txt"), "exakt"),
        (("run", "--lines", "json:nothing", "notes.txt"), "nothing"),
        (("show", "notes.txt"), "not a Page 87 recording"),
        (("show", "missing.p87"), "There is no recording"),
        (("list", "nowhere"), "not a folder"),
        (("app", "notes.txt"), "not a Page 87 recording"),
        (("app", "--loader", "no_such:load"), "no_such"),
    ],
)
def test_wrong_input_is_exit_code_2_with_a_next_step(page87, notes, tmp_path, words, said):
    done = page87(*words, expect=2)
    assert said in done.stderr
    assert done.stderr.startswith("page87: ")
    assert len(done.stderr.splitlines()) >= 2, "the second line says what to do"
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "recordings").glob("*.p87"))


def test_an_existing_recording_is_kept_unless_forced(page87, notes, tmp_path):
    page87("run", "-o", "r.p87", notes)
    before = (tmp_path / "r.p87").read_bytes()
    assert "exists already" in page87("run", "-o", "r.p87", notes, expect=2).stderr
    assert (tmp_path / "r.p87").read_bytes() == before
    page87("run", "--force", "-o", "r.p87", notes)
    assert (tmp_path / "r.p87").read_bytes() != before


def test_force_loses_nothing(page87, notes, tmp_path):
    page87("run", "--engine", "none", "-o", "r.p87", notes)
    before = (tmp_path / "r.p87").read_bytes()
    page87("run", "--force", "-o", "r.p87", "missing.pdf", expect=2)
    assert (tmp_path / "r.p87").read_bytes() == before
    words = notes.read_text()
    done = page87("run", "--force", "-o", notes, notes, expect=2)
    assert "--force replaces recordings only" in done.stderr
    assert notes.read_text() == words


def test_the_list_names_every_file_and_what_is_wrong_with_it(page87, notes, tmp_path):
    assert "No recordings" in page87("list").stdout
    page87("run", notes)
    (tmp_path / "recordings" / "broken.p87").write_text("nothing")
    lines = page87("list").stdout.splitlines()
    assert len(lines) == 3
    assert any("broken.p87" in line and "cannot be read" in line for line in lines)
    entries = json.loads(page87("list", "--json").stdout)
    assert {entry["state"] for entry in entries} == {"finished", None}


def test_ctrl_c_completes_the_recording(tmp_path):
    script = write(
        tmp_path / "job.py",
        """
        import time
        from diagnostics import units
        for page in units(range(1000)):
            time.sleep(0.02)
        """,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "diagnostics", "run", "-o", "r.p87", "--engine", "none", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    recording = tmp_path / "r.p87"
    deadline = time.monotonic() + 20
    while not recording.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.8)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "cancelled" in said
    with RecordingReader(recording) as reader:
        outcome = reader.outcome()
        assert outcome.state == "cancelled"
        assert outcome.last_unit > 3
    assert [path.name for path in tmp_path.glob("r.p87*")] == ["r.p87"]


@pytest.mark.parametrize("where", [(), ("--child",)])
def test_impatient_ctrl_c_on_a_terminal_completes_the_recording(tmp_path, where):
    script = write(
        tmp_path / "job.py",
        """
        import time
        from diagnostics import units
        for page in units(range(1000)):
            time.sleep(0.02)
        """,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "diagnostics", "run", "-o", "r.p87", *where, script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    recording = tmp_path / "r.p87"
    deadline = time.monotonic() + 20
    while not recording.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.8)
    for _ in range(3):  # to the whole group, as a terminal does
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.01)
    said, complaints = process.communicate(timeout=20)
    # A press that comes after the last word finds Python without its handler: a shell says 130.
    assert process.returncode in (130, -signal.SIGINT)
    assert "cancelled" in said
    assert "Traceback" not in complaints
    with RecordingReader(recording) as reader:
        assert reader.outcome().state == "cancelled"
    assert [path.name for path in tmp_path.glob("r.p87*")] == ["r.p87"]


def test_the_server_ends_with_the_command_that_started_it(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "diagnostics", "app", "--no-browser"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PAGE87_RECORDINGS": str(tmp_path),
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    ports = (re.search(r"http://127\.0\.0\.1:(\d+)/", line) for line in process.stdout)
    port = int(next(found[1] for found in ports if found))
    with socket.create_connection(("127.0.0.1", port), 5):
        pass  # it answers
    process.terminate()
    assert process.wait(15) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_reader_that_has_had_enough_is_no_error(page87, notes, tmp_path):
    page87("run", "-o", "r.p87", notes)
    shell = f"{sys.executable} -m diagnostics show r.p87 | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert done.stderr == ""


def test_an_encrypted_document_asks_for_its_password(page87, tmp_path):
    from pypdf import PdfWriter

    writer = PdfWriter()
    writer.add_blank_page(200, 200)
    writer.encrypt("s3cret")
    with (tmp_path / "secret.pdf").open("wb") as file:
        writer.write(file)
    assert "password" in page87("run", "secret.pdf", expect=2).stderr.lower()
    page87("run", "--password", "wrong", "secret.pdf", expect=2)
    done = page87("run", "-o", "r.p87", "--password", "s3cret", "secret.pdf")
    assert "finished, 1 page" in done.stdout
    assert b"s3cret" not in (tmp_path / "r.p87").read_bytes()


@pytest.mark.parametrize("where", [(), ("--child",)])
def test_a_script_may_change_to_another_folder(page87, tmp_path, where):
    script = write(tmp_path / "job.py", "import os\nos.chdir('/')\n")
    done = page87("run", "--engine", "none", *where, "-o", "r.p87", script)
    assert "Open it           page87 app r.p87" in done.stdout
    assert (tmp_path / "r.p87").exists()


@pytest.mark.parametrize("where", [(), ("--child",)])
@pytest.mark.parametrize(("end", "status"), [("", 0), ("raise ValueError", 3)])
def test_a_recording_that_is_deleted_meanwhile_is_missed(page87, tmp_path, where, end, status):
    script = write(tmp_path / "job.py", f"import os\nos.remove('r.p87')\n{end}\n")
    words = ("run", "--engine", "none", *where, "-o", "r.p87", script)
    done = page87(*words, expect=status)
    assert "r.p87 was deleted while it was written" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("where", [(), ("--child",)])
def test_the_reason_that_a_script_exits_with_is_printed(page87, tmp_path, where):
    script = write(tmp_path / "job.py", "import sys\nsys.exit('no more paper')")
    done = page87("run", "--engine", "none", *where, script, expect=3)
    assert "no more paper" in done.stderr.splitlines()


def test_ctrl_c_during_the_imports_is_told_in_a_word(tmp_path):
    program = """
    import sys
    class Impatient:
        def find_spec(self, name, *rest):
            if name == "diagnostics.commands.run":
                raise KeyboardInterrupt
    sys.meta_path.insert(0, Impatient())
    from diagnostics.cli import main
    sys.exit(main(["list"]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (130, "page87: interrupted\n")


@pytest.mark.parametrize(
    "body",
    [
        "import sys\nsys.stdout.close()\nsys.stderr.close()",
        "import os\nos.close(1)\nos.close(2)",
        "import io, sys\nsys.stdout = sys.stderr = io.StringIO()",
    ],
)
def test_a_script_that_closes_its_output_keeps_ours(page87, tmp_path, body):
    script = write(tmp_path / "job.py", body)
    assert "job: finished" in page87("run", "--engine", "none", script).stdout
    done = page87("run", "--engine", "none", "--json", script)
    assert json.loads(done.stdout)["outcome"]["state"] == "finished"


def test_what_is_missing_is_named_alone(page87):
    said = page87("run", expect=2).stderr
    assert "the following arguments are required: DOC|SCRIPT.py\n" in said


def test_an_exceptions_message_does_not_steer_the_terminal(page87, tmp_path):
    script = write(tmp_path / "job.py", 'raise ValueError("\\x1b[2Jred\\r" + "x" * 5000)')
    page87("run", "--engine", "none", "--quiet", "-o", "r.p87", script, expect=3)
    shown = page87("show", "r.p87").stdout
    assert "\x1b" not in shown
    assert "ValueError: \\x1b[2Jred\\x0dxxx" in shown
    # The message has 4 + 3 + 1 characters before its 5,000: ESC [ 2 J, red, CR.
    assert "x… (3,008 characters more, see --json)" in shown
