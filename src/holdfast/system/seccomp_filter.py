"""The system calls that are not for an isolated program, as a seccomp filter. Pure.

The kernel's keys belong to a uid, not to a namespace: by its serial a key that was unlocked outside could be read. In a
cgroup namespace of its own a program could mount the control groups, and freeze or kill what its user runs outside.
"""

from __future__ import annotations

import struct

_KEY_CALLS = 3  # add_key, request_key and keyctl follow one another everywhere
_CLONE3 = 435  # the same everywhere; its flags cannot be seen here, and everyone goes on with clone where it is missing
_CLONE_NEWCGROUP = 0x02000000
_X32 = 1 << 30  # x86_64 with short pointers: the same architecture, numbers with this bit
# AUDIT_ARCH_*: the first of the calls for keys, unshare, clone, and which word of clone's arguments has its flags
_MACHINES = (
    (0xC000003E, (248, 272, 56), 0),  # x86_64
    (0xC000003E, (248 | _X32, 272 | _X32, 56 | _X32), 0),
    (0x40000003, (286, 310, 120), 0),  # i386
    (0xC00000B7, (217, 97, 220), 0),  # aarch64
    (0x40000028, (309, 337, 120), 0),  # arm
    (0xC00000F3, (217, 97, 220), 0),  # riscv64
    (0xC0000015, (269, 282, 120), 0),  # ppc64le
    (0x80000016, (278, 303, 120), 1),  # s390x
)
# BPF: a word of seccomp_data, comparisons with where to go on if so and if not, the verdict
_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # where in seccomp_data
_ALLOW, _NO_SUCH_CALL, _REFUSED = 0x7FFF0000, 0x00050000 | 38, 0x00050000 | 1  # SECCOMP_RET_ERRNO: ENOSYS, EPERM


def program() -> bytes:
    """The system calls that are not for inside, for every machine that is known here."""
    code: list[tuple[int, int, int, int]] = []
    for arch, calls, flags_in in _MACHINES:
        block = _block(*calls, flags_in, big_endian=not arch & 1 << 30)
        code += [(_LOAD, 0, 0, _ARCH), (_EQUAL, 0, len(block), arch), *block]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *one) for one in code)


def _block(keys: int, unshare: int, clone: int, flags_in: int, *, big_endian: bool) -> list[tuple[int, int, int, int]]:
    code = [
        (_LOAD, 0, 0, _NUMBER),
        (_EQUAL, 2, 0, _CLONE3 | keys & _X32),
        (_AT_LEAST, 0, 2, keys),
        (_AT_LEAST, 1, 0, keys + _KEY_CALLS),
        (_RETURN, 0, 0, _NO_SUCH_CALL),
    ]
    for call, word in ((unshare, 0), (clone, flags_in)):
        code += [
            (_LOAD, 0, 0, _NUMBER),
            (_EQUAL, 0, 3, call),
            (_LOAD, 0, 0, _ARGUMENTS + 8 * word + (4 if big_endian else 0)),
            (_HAS, 0, 1, _CLONE_NEWCGROUP),
            (_RETURN, 0, 0, _REFUSED),
        ]
    return code
