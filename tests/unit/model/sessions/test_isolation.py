"""What an isolated program sees: the options in their order, what is refused, and that a child never sees more."""

from __future__ import annotations

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.sessions import isolation
from holdfast.model.sessions.isolation import EXCHANGE, Machine, Place, View

MACHINE = Machine((("/usr", ""), ("/bin", "usr/bin"), ("/etc", "")), ("/run/resolv.conf",), ("/srv/hold",))
PLACE = Place(
    "/home/ada/.hold",
    "/home/ada/.hold/s/door",
    "/home/ada/.hold/s/exchange",
    "/home/ada",
    ("/run/user/7",),
    ("/tmp/agent",),
)


def options(view: View, env: dict[str, str] | None = None) -> list[str]:
    return isolation.options(view, MACHINE, PLACE, env or {})


def mounts(view: View) -> list[tuple[str, str]]:
    """(kind, place) of every mount, in order."""
    words, found = options(view), []
    for n, word in enumerate(words):
        if word in ("--bind", "--ro-bind", "--ro-bind-try", "--symlink"):
            found.append((word[2:], words[n + 2]))
        elif word in ("--tmpfs", "--proc", "--dev", "--dir"):
            found.append((word[2:], words[n + 1]))
    return found


def test_the_system_is_read_and_the_folder_is_written() -> None:
    seen = mounts(View("/srv/app"))
    assert {("ro-bind", "/usr"), ("ro-bind", "/etc"), ("symlink", "/bin"), ("bind", "/srv/app")} <= set(seen)
    assert [place for kind, place in seen if kind == "bind"] == ["/srv/app", EXCHANGE]


def test_temporary_files_processes_and_the_user_s_home_are_its_own() -> None:
    seen = mounts(View("/srv/app"))
    assert {("tmpfs", "/tmp"), ("tmpfs", "/run"), ("proc", "/proc"), ("dev", "/dev"), ("dir", "/home/ada")} <= set(seen)
    words = options(View("/srv/app"))
    assert {"--unshare-user", "--unshare-pid", "--unshare-ipc"} <= set(words)
    assert words[words.index("--cap-drop") + 1] == "ALL"


def test_the_door_lies_over_the_home_after_everything_that_could_show_it() -> None:
    seen = mounts(View("/home/ada/app", read=("/home/ada",)))
    assert seen.index(("ro-bind", "/home/ada/.hold")) > max(
        seen.index(("ro-bind", "/home/ada")), seen.index(("bind", "/home/ada/app"))
    )


def test_inner_folders_lie_over_outer_ones_whatever_the_order_they_were_named_in() -> None:
    view = View("/srv/app", read=("/data/in/secret", "/data"), write=("/data/in",))
    order = [place for _, place in mounts(view) if place.startswith("/data")]
    assert order == ["/data", "/data/in", "/data/in/secret"]


def test_our_own_code_stays_read_only_inside_a_folder_that_may_be_written() -> None:
    seen = mounts(View("/srv"))
    assert seen.index(("ro-bind", "/srv/hold")) > seen.index(("bind", "/srv"))


def test_runtime_folders_and_agents_are_covered_where_they_would_show() -> None:
    assert ("tmpfs", "/run/user/7") not in mounts(View("/srv/app"))
    assert ("tmpfs", "/run/user/7") in mounts(View("/srv/app", read=("/run",)))
    words = options(View("/srv/app", write=("/tmp",)))
    assert words[words.index("/tmp/agent") - 2 : words.index("/tmp/agent")] == ["--ro-bind", "/dev/null"]


def test_the_network_is_there_unless_it_is_not_wanted() -> None:
    assert "--unshare-net" not in options(View("/srv/app"))
    assert "--unshare-net" in options(View("/srv/app", network=False))


def test_variables_that_lead_outside_are_left_out() -> None:
    env = {
        "PATH": "/bin",
        "SSH_AUTH_SOCK": "/x",
        "DBUS_SESSION_BUS_ADDRESS": "/y",
        "HOLDFAST_OPERATOR": "ada",
        "HOLDFAST_STORE": "postgres://u:p@h",
        "XDG_RUNTIME_DIR": "/run/user/7",
        "DISPLAY": ":0",
    }
    assert isolation.environment(env, "/h") == {"PATH": "/bin", "HOLDFAST_HOME": "/h", "HOLDFAST_ISOLATED": "1"}


def test_variables_go_where_other_users_cannot_read_them() -> None:
    words = options(View("/srv/app"), {"TOKEN": "secret"})
    assert words[words.index("TOKEN") - 1 : words.index("TOKEN") + 2] == ["--setenv", "TOKEN", "secret"]
    assert "secret" not in isolation.launched(["prog"], MACHINE, terminal=True)


@pytest.mark.parametrize(
    "cwd", ["/", "/usr", "/etc", "/home", "/home/ada", "/tmp", "/run", "/var", "/proc", "/dev/shm"]
)
def test_a_folder_that_is_too_much_to_write_is_refused(cwd: str) -> None:
    with pytest.raises(HoldfastError) as caught:
        isolation.check(View(cwd), PLACE.home, "/home/ada")
    assert caught.value.code == "invalid"
    assert "--write" in caught.value.hint


def test_who_names_the_folder_has_said_that_it_is_meant() -> None:
    isolation.check(View("/home/ada", write=("/home/ada",)), "/srv/hold", "/home/ada")
    isolation.check(View("/home/ada/app"), PLACE.home, "/home/ada")
    isolation.check(View("/tmp/app"), PLACE.home, "/home/ada")


@pytest.mark.parametrize("folder", ["/home/ada", "/home"])
def test_no_folder_above_the_home_is_given_to_write(folder: str) -> None:
    for view in (View(folder, write=(folder,)), View("/srv/app", write=(folder,))):
        with pytest.raises(HoldfastError, match=f"is below {folder}"):
            isolation.check(view, PLACE.home, "/home/ada")
    isolation.check(View("/srv/app", read=("/home/ada",)), PLACE.home, "/home/ada")  # covered, and it stays where it is


@pytest.mark.parametrize(
    "view",
    [
        View("/home/ada/.hold/x"),
        View("/a", read=("/home/ada/.hold",)),
        View("/a", write=("/home/ada/.hold/keys",)),
        View("/a", read=("/",)),
        View("/a", read=("/proc",)),
        View("/a", write=("/dev/sda",)),
        View("a"),
        View("/a", read=("b\0c",)),
    ],
)
def test_the_home_the_root_and_the_kernel_s_folders_are_never_shown(view: View) -> None:
    with pytest.raises(HoldfastError) as caught:
        isolation.check(view, PLACE.home, "/home/ada")
    assert caught.value.code == "invalid"


VIEWS = (("/proc", "proc"), ("/sys", "sysfs"), ("/sys/fs/cgroup", "cgroup2"), ("/srv/root/proc", "proc"))


@pytest.mark.parametrize(
    "view",
    [
        View("/a", write=("/sys",)),
        View("/sys/kernel"),
        View("/a", write=("/sys/fs/cgroup/x",)),
        View("/srv/root/proc"),
        View("/a", read=("/srv/root/proc/1",)),
    ],
)
def test_the_kernel_s_file_systems_are_not_handed_over_wherever_they_are_mounted(view: View) -> None:
    with pytest.raises(HoldfastError) as caught:
        isolation.check(view, PLACE.home, "/home/ada", VIEWS)
    assert caught.value.code == "invalid"
    assert "is a kernel file system" in caught.value.message


def test_the_kernel_s_file_systems_are_covered_where_a_folder_around_them_is_shown() -> None:
    machine = MACHINE._replace(views=VIEWS, switches=("/proc/sys",))
    isolation.check(View("/a", read=("/sys",)), PLACE.home, "/home/ada", VIEWS)
    words = isolation.options(View("/srv/root", read=("/sys",)), machine, PLACE, {})
    assert [words[n + 1] for n, word in enumerate(words) if word == "--tmpfs"] == ["/tmp", "/run", "/srv/root/proc"]
    assert words.index("/proc/sys") > words.index("--proc")


def test_what_lies_elsewhere_for_another_user_is_bound_from_there() -> None:
    view = View("/srv/app", read=("/data",))
    trees = isolation.trees(view, MACHINE, PLACE)
    assert dict(trees) == {
        "/run/resolv.conf": False,
        "/data": False,
        "/srv/app": True,
        "/srv/hold": False,
        PLACE.door: True,
        PLACE.exchange: True,
    }
    staged = {path: f"/stage/{n}" for n, (path, _) in enumerate(trees)}
    words = isolation.options(view, MACHINE, PLACE, {}, staged)
    bound = {words[n + 2]: words[n + 1] for n, word in enumerate(words) if "bind" in word}
    assert {bound[path] for path in ("/srv/app", "/data", EXCHANGE, PLACE.home)} <= set(staged.values())
    assert words[words.index("--uid") + 1] == "0"


PARENT = View("/srv/app", read=("/data",), write=("/out",), network=False)


def test_a_child_has_what_its_parent_has_and_no_network_that_the_parent_lacks() -> None:
    child = isolation.narrowed(PARENT, View("/srv/app/sub", network=True))
    assert child == View("/srv/app/sub", read=("/data",), write=("/out", "/srv/app"), network=False)


def test_what_is_mounted_for_a_child_are_only_its_parent_s_own_roots() -> None:
    """A path below them could become a link between our look and the mount."""
    child = isolation.narrowed(PARENT, View("/out/link", write=("/out/link", "/srv/app/link"), read=("/data/x",)))
    assert {*child.write, *child.read} == {"/srv/app", "/out", "/data"}


@pytest.mark.parametrize(
    "asked",
    [
        View("/"),
        View("/srv"),
        View("/srv/application"),
        View("/srv/app", write=("/data",)),
        View("/srv/app", write=("/",)),
        View("/srv/app", read=("/home/ada",)),
        View("/tmp"),
        View("/data"),
    ],
)
def test_a_child_that_would_see_more_is_refused(asked: View) -> None:
    with pytest.raises(HoldfastError) as caught:
        isolation.narrowed(PARENT, asked)
    assert caught.value.code == "not_allowed"


def test_a_grandchild_sees_no_more_than_the_child() -> None:
    child = isolation.narrowed(PARENT, View("/srv/app"))
    assert isolation.narrowed(child, View("/out")) == View("/out", ("/data",), ("/out", "/srv/app"), network=False)


def test_a_view_survives_the_manifest() -> None:
    assert isolation.from_dict(PARENT.as_dict()) == PARENT
