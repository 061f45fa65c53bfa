"""What looks like a secret does not get through; what people need to judge a command does."""

from __future__ import annotations

import pytest

from holdfast.model.redact import HIDDEN, TEXT_MAX, bounded, redact


@pytest.mark.parametrize(
    "text",
    [
        "curl -H 'Authorization: Bearer S3CRETS3CRET' https://x",
        "curl -u bob:S3CRETS3CRET https://x",
        "export API_KEY=S3CRETS3CRET",
        "API_KEY='S3CRETS3CRET with space' make",
        "deploy --password S3CRETS3CRET",
        "deploy --token=S3CRETS3CRET",
        "psql postgres://me:S3CRETS3CRET@db/app",
        "mysql -u root -pS3CRETS3CRET app",
        '{"client_secret": "S3CRETS3CRET"}',
        "git clone https://oauth2:S3CRETS3CRET@host/x.git",
        "aws configure set aws_secret_access_key S3CRETS3CRET",
        "echo sk-S3CRETS3CRETabcdefghij",
        "gh auth login --with-token ghp_S3CRETS3CRETabcdefghijkl",
        "echo AKIAS3CRETS3CRETXX",
        "echo eyJS3CRETS3CRET.eyJabcdefghijk.sig",
        "X=aB3S3CRETS3CRETaB3aB3aB3aB3aB3aB3aB3 run",
        "-----BEGIN RSA PRIVATE KEY-----\nS3CRETS3CRET\n-----END RSA PRIVATE KEY-----",
        "PGPASSWORD=S3CRETS3CRET psql",
    ],
)
def test_a_secret_is_hidden(text: str) -> None:
    clean = redact(text)
    assert "S3CRETS3CRET" not in clean
    assert HIDDEN in clean


@pytest.mark.parametrize(
    "text",
    [
        "npm test",
        "git checkout 0123456789abcdef0123456789abcdef01234567",
        "rm -rf node_modules",
        "pytest -k test_tokens -x",
        "cat src/authentication/index.ts",
        "git commit -m 'explain the token budget'",
        "/usr/local/lib/python3.11/site-packages/x",
        "docker run -p 8080:80 nginx",
        "sed -i s/a/b/ password_reset.py",
        "ls --author",
    ],
)
def test_an_ordinary_command_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    assert bounded("x " * 600, 100).endswith("… [1100 more characters]")
    assert bounded("short", 100) == "short"
    assert len(bounded("y" * (TEXT_MAX * 3), 50)) < 100


def test_a_hostile_text_takes_no_time_to_speak_of() -> None:
    for text in (
        "a" * TEXT_MAX,
        "token" * (TEXT_MAX // 5),
        "-" * TEXT_MAX,
        "://" * (TEXT_MAX // 3),
        "curl " * 9000,
        "A1a" * (TEXT_MAX // 3),
        "'" * TEXT_MAX,
    ):
        redact(text)
