#!/usr/bin/env python3
"""Holds our hooks against a real client: set up by `rewind init` alone, a scripted session, then `rewind restore N --scope code`
for every N, which must give the exact tree that turn N began with.

usage: capture.py BINARY HARNESS CLIENT [--git]       in a network namespace with loopback only:
  unshare -n sh -c 'ip link set lo up; exec python3 tests/clients/capture.py target/release/rewind ../shared/harness claude'

The client talks to the harness's own model. Acts in /home/dev, which it empties. Prints one line a check; the last line is the count.
"""
import json, shutil, subprocess, sys, tempfile
from pathlib import Path

BIN, HARNESS, NAME = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3]
sys.path.insert(0, str(HARNESS))
import drive

HOME, WS = Path("/home/dev"), Path("/home/dev/shop")
SEED = {"a.txt": "one\n", "bytes.csv": "sku,price\r\nA1,10\r\n", "last": "no line end", "gone.txt": "soon rewritten\n"}
TURNS = [
    [["edit", "a.txt", "one", "two"], ["write", "new/deep/b.txt", "bee\n"]],
    [["write", "a.txt", "written over\n"], ["write", "gone.txt", "all of it is new\n"]],
    [["edit", "a.txt", "no such text", "x"], ["edit", "new/deep/b.txt", "bee", "wasp"]],
    [["bash", "true"]],
    [["write", "last", "with a line end\n"], ["write", "a.txt", "and again\n"], ["edit", "a.txt", "again", "once more"]],
]
GIT = "--git" in sys.argv
if GIT:
    TURNS[3] = [["bash", "rm a.txt last; echo more >> bytes.csv; mkdir -p made; echo by-shell > made/new"]]
    TURNS[4] = [["write", "again", "written\\n"]]
faults = checks = 0


def say(ok, text):
    global faults, checks
    checks += 1
    faults += not ok
    print(("ok    " if ok else "FAULT ") + f"{NAME} {text}", flush=True)


def rewind(*args):
    env = {"HOME": str(HOME), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    r = subprocess.run([str(BIN), *args], cwd=WS, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    return r.returncode, (r.stdout + r.stderr).decode("utf8", "replace")


def tree(root):
    return {str(p.relative_to(root)): (p.read_bytes(), p.stat().st_mode & 0o777) for p in sorted(Path(root).rglob("*")) if p.is_file() and ".git/" not in str(p)}


class Trusted(drive.Codex):
    def run(self, prompt, n):
        command = super().run(prompt, n)
        return [*command[:2], "--dangerously-bypass-hook-trust", *command[2:]]


for d in (HOME, WS):
    shutil.rmtree(d, ignore_errors=True)
    d.mkdir(parents=True)
client = (Trusted if NAME == "codex" else drive.ALL[NAME])(HOME, WS)
client.setup()
for path, text in SEED.items():
    (WS / path).write_bytes(text.encode())
if GIT:
    for args in (["init", "-q"], ["add", "-A"], ["-c", "user.name=u", "-c", "user.email=u@x", "commit", "-qm", "all"]):
        subprocess.run(["git", *args], cwd=WS, check=True, env={"HOME": str(HOME), "PATH": "/usr/bin:/bin"})


def repo():
    if not GIT:
        return None
    told = [subprocess.run(["git", *a], cwd=WS, capture_output=True, env={"HOME": str(HOME), "PATH": "/usr/bin:/bin", "GIT_OPTIONAL_LOCKS": "0"}).stdout
            for a in (["stash", "list"], ["rev-parse", "HEAD"], ["branch", "-a"], ["log", "--oneline", "--branches"], ["diff", "--cached"])]
    return told, (WS / ".git/config").read_bytes()


before = repo()
code, said = rewind("init", NAME, *(["--git"] if GIT else []))
say(code == 0, f"init: {said.splitlines()[-1] if said else code}")
log = Path(tempfile.mkdtemp()) / "requests.jsonl"
mock = drive.start_mock(log)
trees, answers = [], []
try:
    for n, ops in enumerate(TURNS):
        trees.append(tree(WS))
        calls = [c for o in ops for c in client.op(o, WS)]
        prompt = "\n".join([f"Turn {n} of the script"] + ["@@call " + json.dumps(c, ensure_ascii=False) for c in calls])
        answers.append(drive.send(client, prompt, n))
finally:
    mock.terminate()
end = tree(WS)
say(end != trees[0], "the client did what the script says")
# `codex exec` shows the name of every hook that runs, whoever's, and warns of the option with which they are trusted.
own = ("hook: ", "warning: `--dangerously-bypass-hook-trust`")
seen = [l for a in answers for l in a.splitlines() if any(w in l.lower() for w in ("hook", "rewind")) and "@@call" not in l
        and not (NAME == "codex" and l.startswith(own) and not l.endswith("Failed"))]
say(not seen, f"the client says nothing of us {seen}")
sent = log.read_text() if log.exists() else ""
say("rewind" not in sent, "nothing of ours is in what it sends")
for n, want in enumerate(trees):
    code, said = rewind("restore", str(n), "--scope", "code", "--yes")
    now = tree(WS)
    odd = sorted(k for k in set(want) | set(now) if want.get(k) != now.get(k))
    say(code in (0, 3) and not odd, f"restore {n}: exit {code} {odd} {said if odd else ''}")
    if code in (0, 3) and now != end:
        code, said = rewind("undo", "--yes")
        say(code == 0 and tree(WS) == end, f"undo: {code} {said if code else ''}")
say(repo() == before, "the user's git is as it was")
code, said = rewind("list")
print(said)
code, said = rewind("deinit", NAME)
say(code == 0, f"deinit: {said.splitlines()[-1] if said else code}")
print(f"{checks - faults} passed, {faults} failed")
sys.exit(faults > 0)
