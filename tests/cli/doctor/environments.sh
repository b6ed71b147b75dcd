#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Missing or forbidden: directories, memory, permissions, namespaces, programs.
. "$TS_SOURCE/tests/cli/live.sh"

# Prints the result of a check, one line each, and the exit code; leading VARIABLE=VALUE words set
# the environment. The limit is for busy machines: a check that exceeds it is unknown.
say() { # check...
	local code=0
	"$TRACESMITH" doctor --limit 60 --json "$@" >said.json 2>err.txt || code=$?
	[ ! -s err.txt ] || fail "$*: $(cat err.txt)"
	python3 - "$PWD" <<'PY'
import json, sys
for check in json.load(open("said.json"))["checks"]:
    print(check["id"], check["state"] + ":", check["why"].replace(sys.argv[1], "HERE"))
PY
	[ $code -eq 0 ] || echo "exit $code"
}
remedy() { { "$TRACESMITH" doctor --limit 60 --json "$1" || true; } | python3 -c 'import json, sys; print(json.load(sys.stdin)["checks"][0]["fix"])'; }

echo "--- the live directory"
(
	export TRACESMITH_LIVE_DIR=/proc/no/such
	say live_directory agent
	remedy live_directory
	remedy agent
)
touch file
(
	export TRACESMITH_LIVE_DIR=$PWD/file
	say live_directory
)
chmod 755 live
say live_directory agent
remedy live_directory | sed "s#$PWD#HERE#"
remedy agent | sed "s#$PWD#HERE#"
chmod 700 live
mkdir -m 755 "it's odd"
(
	export TRACESMITH_LIVE_DIR="$PWD/it's odd"
	command=$(remedy live_directory)
	echo "$command" | sed "s#$PWD#HERE#"
	eval "$command"
	say live_directory
)

echo "--- the agent"
(
	export TRACESMITH_AGENT_PATH=/no/such/agent.so
	say agent
)
echo "not a library" >broken.so
(
	export TRACESMITH_AGENT_PATH=$PWD/broken.so
	say agent
)
mkdir "a folder"
cp broken.so "a folder/agent.so"
(
	export TRACESMITH_AGENT_PATH="$PWD/a folder/agent.so"
	say agent | sed 's/;.*//'
)
# No recorder starts, whatever the user's environment requests.
(
	export TRACESMITH_OUT=$PWD/t.sbt TRACESMITH_LIVE=1
	say agent
)
[ ! -e t.sbt ] || fail "a recorder was started"

echo "--- no Python"
python=$(command -v python3)
mkdir empty
PATH=$PWD/empty "$TRACESMITH" doctor python --limit 60 --json >said.json
"$python" -c 'import json; check = json.load(open("said.json"))["checks"][0]; assert check["state"] in ("absent", "unknown"); print(check["why"][:18])'
mkdir fake
printf '#!/bin/sh\nexit 5\n' >fake/python3
chmod +x fake/python3
PATH=$PWD/fake "$TRACESMITH" doctor python --limit 60 --json >said.json
"$python" -c 'import json; check = json.load(open("said.json"))["checks"][0]; print(check["state"], check["why"].split(";")[0])'
# The tested Python is not recorded.
printf '#!/bin/sh\n/usr/bin/env >"%s/environment"\n' "$PWD" >fake/python3
TRACESMITH_OUT=$PWD/t.sbt TRACESMITH_LIVE=1 TRACESMITH_AGENT=enabled=1 LD_PRELOAD=libm.so.6 PATH=$PWD/fake "$TRACESMITH" doctor python --limit 60 >/dev/null
grep -c '^PATH=' environment
grep -E '^(TRACESMITH_(OUT|LIVE|AGENT)|LD_PRELOAD)=' environment || true
printf '#!/bin/sh\nexec /bin/sleep 60\n' >fake/python3
PATH=$PWD/fake "$TRACESMITH" doctor python --limit 1 --json >said.json
"$python" -c 'import json; check = json.load(open("said.json"))["checks"][0]; print(check["state"], check["why"])'

echo "--- few files"
(
	ulimit -n 100
	say open_files
	remedy open_files
)

echo "--- without rights"
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
	echo "skip: only root can become another user"
	exit 77
fi
# A directory that others can read.
public=$(mktemp -d /tmp/tracesmith-doctor.XXXXXX)
trap 'rm -rf "$public"' EXIT
chmod 755 "$public"
cp "$TRACESMITH" "$(dirname "$TRACESMITH")/libtracesmith-agent.so" "$public"
mkdir -m 700 "$public/live"
chown 65534:65534 "$public/live"
as_nobody() { TRACESMITH_LIVE_DIR=$public/live setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
as_nobody "$public/tracesmith" doctor --limit 60 --json >said.json || fail "the basics do not work for others"
python3 - <<'PY'
import json
report = json.load(open("said.json"))
state = {check["id"]: check["state"] for check in report["checks"]}
assert report["system"]["uid"] == 65534 and report["system"]["capabilities"] == [], report["system"]
assert state["agent"] == "yes" and state["live_directory"] == "yes", state
assert state["ebpf"] == "no" and state["uprobes"] in ("no", "absent"), state
assert state["taskstats"] != "yes", state
print("nobody can record:", report["basics_work"])
PY
# root's folder is not usable by others.
TRACESMITH_LIVE_DIR=$PWD/live setpriv --reuid 65534 --regid 65534 --clear-groups "$public/tracesmith" doctor --limit 60 --json live_directory >said.json && fail "root's live directory"
python3 -c 'import json; print(json.load(open("said.json"))["checks"][0]["state"])'

echo "--- nothing may be executed"
unshare -m true 2>/dev/null || { echo "skip: mount namespaces are not permitted"; exit 77; }
mkdir noexec
unshare -m bash -c 'mount -t tmpfs -o noexec tmpfs noexec && cp "$1" noexec/agent.so && TRACESMITH_AGENT_PATH=$PWD/noexec/agent.so exec "$0" doctor --limit 60 --json agent' \
	"$TRACESMITH" "$(dirname "$TRACESMITH")/libtracesmith-agent.so" >said.json && fail "an agent that may not be executed"
python3 - "$PWD" <<'PY'
import json, sys
check = json.load(open("said.json"))["checks"][0]
print(check["state"], check["why"], check["fix"].replace(sys.argv[1], "HERE"))
PY

echo "--- small memory"
for size in 64k 512k 2m 1g; do
	TRACESMITH_LIVE_DIR='' unshare -m bash -c "mount -t tmpfs -o size=$size tmpfs /dev/shm && exec \"\$0\" doctor --limit 60 --json shared_memory" "$TRACESMITH" >said.json || true
	python3 -c 'import json; report = json.load(open("said.json")); check = report["checks"][0]; print(check["state"], check["why"].split(":")[0], report["basics_work"])'
	# The suggested remedy works.
	TRACESMITH_LIVE_DIR='' unshare -m bash -c "mount -t tmpfs -o size=$size tmpfs /dev/shm && exec \"\$0\" doctor --limit 60 --json agent" "$TRACESMITH" >said.json || true
	python3 -c 'import json; check = json.load(open("said.json"))["checks"][0]; print("agent", check["state"], check["fix"] is not None)'
done

echo "--- namespaces"
unshare -pf --mount-proc "$TRACESMITH" doctor --limit 60 --json containers agent proc >said.json || fail "inside a pid namespace"
python3 - <<'PY'
import json
report = json.load(open("said.json"))
assert report["system"]["pid_namespace"] and report["system"]["container"], report["system"]
for check in report["checks"]:
    print(check["id"], check["state"])
PY
unshare -m bash -c 'mount -t tmpfs tmpfs /proc && exec "$0" doctor --limit 60 --json proc agent' "$TRACESMITH" >said.json && fail "without /proc"
python3 -c 'import json
for check in json.load(open("said.json"))["checks"]:
    print(check["id"], check["state"], check["why"], "|", check["fix"])'
if unshare -U true 2>/dev/null; then
	unshare -Ur "$TRACESMITH" doctor --limit 60 --json ebpf perf_system >said.json
	python3 -c '
import json
report = json.load(open("said.json"))
assert report["system"]["user_namespace"]
# root of a user namespace has no privileges on the machine.
assert [check["state"] for check in report["checks"]] == ["no", "no"], report["checks"]'
fi
echo 'all done'
