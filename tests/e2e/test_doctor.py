"""`hold doctor`: it starts nothing, sees what is wrong, says what to do, and fails only when something is broken."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.client.admin.doctor import home, host, leftovers, machine
from holdfast.host import doctor_checks
from holdfast.system import cgroup_probe
from tests.support.home import HomeForTests, alive, until, wait_fd


@pytest.fixture(autouse=True)
def private(hold: HomeForTests) -> None:
    hold.path.chmod(0o700)


def examined(hold: HomeForTests, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and each check by its name."""
    done = hold("doctor", "--json", *words)
    assert "Traceback" not in done.err, done.err
    document = done.json
    assert document["ok"] is (done.code == 0)
    found = {c["name"]: c for c in document["checks"]}
    assert len(found) == len(document["checks"])
    for check in found.values():
        assert check["status"] in ("ok", "warn", "fail")
        assert check["seen"]
        assert (check["advice"] is None) is (check["status"] == "ok")
    return done.code, found


def test_it_runs_without_a_home_and_makes_none(hold: HomeForTests) -> None:
    hold.path.rmdir()
    code, found = examined(hold)
    assert (code, found["home"]["status"], found["daemon"]["status"]) == (0, "ok", "ok")
    assert not hold.path.exists()


def test_it_starts_no_daemon(hold: HomeForTests) -> None:
    code, found = examined(hold)
    assert code == 0
    assert "none runs" in found["daemon"]["seen"]
    assert list(hold.path.iterdir()) == []


def test_a_sound_home_with_sessions_passes_every_check(hold: HomeForTests) -> None:
    hold.run("sleep", "1000", name="a")
    assert hold.run("sh", "-c", "seq 1 50000; cat", name="b").wait(text="50000", timeout=20).event != "timeout"
    code, found = examined(hold, "--deep")
    assert code == 0
    bad = [c for c in found.values() if c["status"] == "fail"]
    assert bad == []
    for name in ("daemon", "one daemon", "version", "program", "zygote", "keepers", "lost sessions", "logs", "orphans"):
        assert found[name]["status"] == "ok", found[name]
    assert found["keepers"]["seen"] == "all 2 answer"
    shown = hold("doctor")
    assert shown.code == 0
    assert all(len(line.split("\t")) == 4 for line in shown.out.splitlines())


def test_without_a_daemon_it_still_knows_the_keepers_and_reads_the_logs(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo ready; cat", name="a")
    assert s.wait(text="ready", timeout=20).event != "timeout"
    hold.kill_daemon()
    code, found = examined(hold, "--deep")
    assert code == 0
    assert (found["daemon"]["status"], "left by one that was killed" in found["daemon"]["seen"]) == ("warn", True)
    assert "1 of 1 sessions are running" in found["keepers"]["seen"]
    assert found["logs"]["status"] == "ok"
    assert host.HOST not in host.living(hold.host.home)


def test_a_daemon_that_hangs_does_not_hang_its_doctor(hold: HomeForTests) -> None:
    hold.run("sleep", "1000")
    pid = hold.daemon_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        code, found = examined(hold)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (code, found["daemon"]["status"]) == (1, "fail")
    assert f"pid {pid}" in found["daemon"]["seen"]
    assert "stopped" in found["daemon"]["seen"]
    assert f"kill -CONT {pid}" in found["daemon"]["advice"]


def test_a_keeper_that_does_not_answer_fails(hold: HomeForTests) -> None:
    s = hold.run("sleep", "1000", name="stuck")
    keeper = hold.keeper_pid(s)
    os.kill(keeper, signal.SIGSTOP)
    try:
        code, found = examined(hold)
    finally:
        os.kill(keeper, signal.SIGCONT)
    assert (code, found["keepers"]["status"]) == (1, "fail")
    assert "stuck" in found["keepers"]["seen"]


def test_a_lost_session_is_a_warning_that_names_it(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "trap '' HUP; sleep 1000", name="gone")
    fd = os.pidfd_open(hold.keeper_pid(s))
    os.kill(hold.keeper_pid(s), signal.SIGKILL)
    wait_fd(fd)
    until(lambda: s.status().state == "lost")
    code, found = examined(hold)
    assert (code, found["lost sessions"]["status"]) == (0, "warn")
    assert "gone" in found["lost sessions"]["seen"]
    assert "1 entries of processes that were killed" in found["roles"]["seen"]
    s.stop(0)


def test_a_second_daemon_of_the_same_home_fails(hold: HomeForTests) -> None:
    first = hold.daemon_pid()
    (hold.path / "host.lock").unlink()
    (hold.path / "host.sock").unlink()
    hold.host.close()
    second = hold.daemon_pid()
    assert first != second
    try:
        code, found = examined(hold)
        assert (code, found["one daemon"]["status"]) == (1, "fail")
        assert str(first) in found["one daemon"]["seen"]
    finally:
        fd = os.pidfd_open(first)
        os.kill(first, signal.SIGKILL)
        wait_fd(fd)
    code, found = examined(hold)
    assert (code, found["one daemon"]["status"]) == (0, "ok")


def test_a_keeper_whose_folder_was_removed_fails_and_a_folder_without_manifest_warns(hold: HomeForTests) -> None:
    s = hold.run("sleep", "1000", name="orphan")
    keeper = hold.keeper_pid(s)
    shutil.rmtree(hold.path / "sessions" / s.id)
    (hold.path / "sessions" / "ses_empty").mkdir()
    code, found = examined(hold)
    assert (code, found["orphans"]["status"], found["folders"]["status"]) == (1, "fail", "warn")
    assert str(keeper) in found["orphans"]["advice"]
    assert "ses_empty" in found["folders"]["seen"]
    os.kill(keeper, signal.SIGKILL)  # its program has lost its terminal with it, and ends by the hangup
    until(lambda: not alive(keeper))


def test_one_flipped_bit_in_a_log_is_found_by_deep_alone(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "seq 1 100000", name="rotten")
    assert s.wait(exit=True, timeout=20).event != "timeout"
    until(lambda: s.status().state == "exited")
    [segment] = (hold.path / "sessions" / s.id / "out").glob("*.out")
    data = bytearray(segment.read_bytes())
    data[300_000] ^= 1
    segment.write_bytes(data)
    assert examined(hold)[0] == 0
    for stop in (lambda: None, hold.kill_daemon):
        stop()
        code, found = examined(hold, "--deep")
        assert (code, found["logs"]["status"]) == (1, "fail")
        assert "rotten" in found["logs"]["seen"]


def test_a_home_that_others_can_write_fails_and_one_they_can_read_warns(hold: HomeForTests) -> None:
    hold.path.chmod(0o777)
    code, found = examined(hold)
    assert (code, found["home"]["status"]) == (1, "fail")
    assert f"chmod 700 {hold.path}" in found["home"]["advice"]
    hold.path.chmod(0o755)
    code, found = examined(hold)
    assert (code, found["home"]["status"]) == (0, "warn")


def test_a_python_without_the_hosts_modules_fails(hold: HomeForTests, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    path = os.pathsep.join(p for p in sys.path if p)  # enough for the command, which the host does not get
    done = subprocess.run(
        [str(tmp_path / "bare" / "bin" / "python"), "-m", "holdfast.cli.main", "doctor", "--json"],
        env={**hold.env, "PYTHONPATH": path},
        capture_output=True,
        check=False,
        timeout=60,
    )
    [found] = [c for c in json.loads(done.stdout)["checks"] if c["name"] == "modules"]
    assert (done.returncode, found["status"]) == (1, "fail")
    assert "ModuleNotFoundError" in found["seen"]


def test_a_home_that_is_a_file_or_cannot_be_made_fails(hold: HomeForTests, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in ("file", "file/below"):
        done = hold("doctor", "--json", HOLDFAST_HOME=str(tmp_path / path))
        assert done.code == 1
        assert [c["status"] for c in done.json["checks"] if c["name"] == "home"] == ["fail"]


def test_a_file_in_place_of_the_socket_is_no_daemon(hold: HomeForTests) -> None:
    (hold.path / "host.sock").write_text("x")
    assert examined(hold)[1]["daemon"]["status"] == "warn"


def test_bounds_are_judged_before_they_are_reached() -> None:
    assert machine.judge_ptys(4096, 4096)["status"] == "fail"
    assert machine.judge_ptys(4090, 4096)["status"] == "warn"
    assert machine.judge_ptys(10, 4096)["status"] == "ok"
    assert machine.judge_processes(100, 100, 500, 32768)["status"] == "fail"
    assert machine.judge_processes(10, -1, 32768, 32768)["status"] == "fail"
    assert machine.judge_processes(50, 100, 500, 32768)["status"] == "warn"
    assert machine.judge_processes(50, -1, 500, 32768)["status"] == "ok"
    assert machine.judge_open_files(256, 4096)["status"] == "warn"
    assert machine.judge_open_files(-1, -1)["status"] == "ok"
    assert home.judge_disk(1 << 20, 5000, 0)["status"] == "fail"
    assert home.judge_disk(100 << 20, 5000, 0)["status"] == "warn"
    assert home.judge_disk(100 << 30, 10, 0)["status"] == "warn"
    assert home.judge_disk(100 << 30, -1, 0)["status"] == "ok"
    assert doctor_checks.judge_descriptors(1000, 1024)["status"] == "warn"
    assert doctor_checks.judge_descriptors(100, 1024)["status"] == "ok"
    assert leftovers.judge_roles(5000)["status"] == "warn"


def test_what_the_kernel_hides_is_judged_by_who_asks() -> None:
    assert machine.judge_ptrace(1, root=False)["status"] == "ok"
    assert machine.judge_ptrace(2, root=False)["status"] == "warn"
    assert machine.judge_ptrace(2, root=True)["status"] == "ok"
    assert machine.judge_ptrace(3, root=True)["status"] == "warn"
    mounted = "25 1 0:22 / /proc rw,nosuid - proc proc rw,hidepid={}\n"
    assert machine.judge_hidepid(mounted.format("invisible"), root=False)["status"] == "warn"
    assert machine.judge_hidepid(mounted.format("2"), root=True)["status"] == "ok"
    assert machine.judge_hidepid("25 1 0:22 / /proc rw - proc proc rw\n", root=False)["status"] == "ok"


def test_limits_that_cannot_be_enforced_are_named() -> None:
    assert cgroup_probe.judge({"pids", "memory"}, "v2")["status"] == "ok"
    finding = cgroup_probe.judge({"pids"}, "v1")
    assert finding["status"] == "warn"
    assert "--limit memory" in str(finding["seen"])


def test_what_the_probe_promises_a_session_gets(hold: HomeForTests) -> None:
    """The doctor's word against the kernel's: where pids is enforceable, a session's leaf has that limit."""
    s = hold.host.run(["sleep", "1000"], env={"HOLDFAST_HOME": str(hold.path)}, pids_max=77)
    leaves = hold.host.call("status", session=s.id)["cgroup"]
    limits = [(Path(leaf) / "pids.max").read_text().strip() for leaf in leaves if (Path(leaf) / "pids.max").exists()]
    promised = "--limit pids" not in str(examined(hold)[1]["limits"]["seen"]).partition("cannot enforce")[2]
    assert promised is ("77" in limits)


def test_a_clock_that_went_back_is_seen() -> None:
    assert home.judge_clock(1000.0, 5000.0)["status"] == "warn"
    assert home.judge_clock(5000.0, 5060.0)["status"] == "ok"


def test_a_home_over_a_network_is_a_warning() -> None:
    assert home.judge_file_system("nfs4")["status"] == "warn"
    assert home.judge_file_system("ext4")["status"] == "ok"


def test_a_home_of_somebody_else_fails_unless_root_asks() -> None:
    about: Any = SimpleNamespace(st_mode=0o40700, st_uid=1)
    assert home.judge_home("/h", about, ("it belongs to uid 1", "chown"), writable=True)["status"] == "fail"
    assert home.judge_home("/h", about, None, writable=True)["status"] == "ok"
    assert home.judge_home("/h", about, None, writable=False)["status"] == "fail"


def test_an_older_or_replaced_daemon_is_a_warning_that_says_sessions_go_on() -> None:
    finding = host.judge_version("0.0.9", "0.1.0")
    assert finding["status"] == "warn"
    assert "sessions go on" in str(finding["advice"])
    assert host.judge_program("/usr/bin/python3.11 (deleted)")["status"] == "warn"


def test_the_holder_of_a_lock_is_read_from_the_kernels_list() -> None:
    text = (
        "1: POSIX  ADVISORY  WRITE 10 fe:00:99 0 EOF\n"
        "2: FLOCK  ADVISORY  WRITE 4242 fe:00:99 0 EOF\n"
        "2: -> FLOCK  ADVISORY  WRITE 7 fe:00:99 0 EOF\n"
    )
    assert host.parse_locks(text, 0xFE, 0, 99) == 4242
    assert host.parse_locks(text, 0xFE, 1, 99) is None


def test_a_configuration_of_an_older_version_is_named_with_the_way_to_renew_it(
    hold: HomeForTests, tmp_path: Path
) -> None:
    from holdfast.cli.agents.connecting.agent_programs import claude_hooks

    person = tmp_path / "person"
    (person / ".claude").mkdir(parents=True)
    hold.env["HOME"] = str(person)
    assert "claude hooks" not in examined(hold)[1], "nothing is said where it is not connected"
    hooks = {
        e: [g] for e, g in claude_hooks(["/opt/bin/hold"], {"HOLDFAST_HOME": str(hold.path)}) if e != "PostToolUse"
    }
    settings = person / ".claude" / "settings.json"
    settings.write_text(json.dumps({"hooks": hooks}))
    code, found = examined(hold)
    assert (code, found["claude hooks"]["status"]) == (0, "warn")
    assert "PostToolUse" in found["claude hooks"]["seen"]
    assert found["claude hooks"]["advice"] == "run hold connect claude again"
    settings.write_text("{")
    assert examined(hold)[1]["claude hooks"]["status"] == "warn"
