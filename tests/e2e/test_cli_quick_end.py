"""Programs that end while their starter is still connecting: the code and the output are theirs all the same."""

from __future__ import annotations

from tests.support.home import HomeForTests


def test_a_program_that_ends_at_once_passes_its_code_and_its_output(hold: HomeForTests) -> None:
    for n in range(20):
        done = hold("run", "--", "sh", "-c", f"echo {n}; exit 5", stdin=b"ignored\n")
        assert done.code == 5
        # It may be over before its input came: that is told, and nothing else.
        assert done.err == "" or done.err.endswith(" did not read the last 8 bytes of its input\n")
        assert len(done.err.splitlines()) <= 1
        assert str(n) in done.out.splitlines()  # the terminal may echo what was typed, before it or after


def test_a_reader_of_the_output_that_goes_away_ends_the_command(hold: HomeForTests) -> None:
    import subprocess

    from tests.support.home import HOLD

    with subprocess.Popen(
        [*HOLD, "run", "-n", "flood", "--", "yes"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=hold.env,
    ) as command:
        assert command.stdout is not None
        command.stdout.read(100)
        command.stdout.close()
        assert command.wait(60) == 0
    assert hold.host.session("flood").status().state == "live"
