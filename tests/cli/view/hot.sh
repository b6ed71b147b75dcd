#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --hot: sampled instructions, stalls, source lines with inlined functions, launches. A fake
# disassembler prints lines in NVIDIA's format.
. "$TS_SOURCE/tests/cli/live.sh"
target=$TS_BUILD/tests/targets/instruction_samples
cubin=$TS_SOURCE/tests/data/cubin/lines.cubin
# Hides this machine's CUDA: the first disassembler fails.
mkdir bin
export PATH=$PWD/bin:$PATH
printf '#!/bin/sh\nexit 3\n' >bin/nvdisasm
chmod +x bin/nvdisasm

# Stacks depend on the machine; other tests check their text.
without_stacks() { sed '/^    [^ 0-9]/d'; }
# Its path is in the test's folder.
without_path() { sed "s,$PWD/,,"; }

quietly record -q -o c.sbt -- "$target" "$cubin"
t verify c.sbt
t view c.sbt --hot scale | without_stacks | without_path

cp bin/nvdisasm failing
cat >bin/nvdisasm <<'SH'
#!/bin/bash
[ "$1" = -c ] && [ "$2" = -fun ] && [ "$3" -gt 0 ] && [ "$(head -c 4 "$4" | tail -c 3)" = ELF ] || exit 3
printf '\t.section\t.text._Z5scaleIfEvPT_PKS0_i,"ax",@progbits\n.text._Z5scaleIfEvPT_PKS0_i:\n'
printf '        /*00d0*/                   LDG.E R2, desc[UR4][R2.64] ;\n'
printf '        /*0100*/              @!P0 FFMA R7, R5, R2, 1 ;   /* 0x0000 */\n                        /* 0x0f */\n'
SH
cp bin/nvdisasm good
t view c.sbt --hot scale --limit 2 | without_stacks

# Exact counts if samples name their launch; and as JSON.
cp failing bin/nvdisasm
quietly record -q -o s.sbt -- "$target" "$cubin" serialized
t view s.sbt --hot 'void scale<float>(float*, float const*, int)' --limit 1 | without_stacks | without_path
cp good bin/nvdisasm
"$TRACESMITH" view s.sbt --hot scale --json | python3 -c '
import json, sys
hot = json.load(sys.stdin)
print(hot["kernel"], hot["module"], hot["samples"], hot["launches_are"])
print([(r["reason"], r["samples"], r["share_pct"]) for r in hot["stalls"]])
for i in hot["instructions"]:
    print(hex(i["offset"]), i["samples"], i["sass"], [(p["file"], p["line"], p["inlined"]) for p in i["source"]])
print(sorted((l["launches"], l["samples"]) for l in hot["launches"]) if all(l["stack"] for l in hot["launches"]) else "no stacks", sum(l["samples"] for l in hot["launches"]))'

cp failing bin/nvdisasm

# Both kernels have this name; the trace has no code.
quietly record -q -o n.sbt -- "$target" "$cubin" nocode
t view n.sbt --hot a | without_stacks
t view n.sbt --hot 'p*n' --limit 0

# Killed: what was emitted is there, with the code.
bash -c '"$TRACESMITH" record -q -o k.sbt -- "$@"; echo "shell sees $?"' bash "$target" "$cubin" kill 2>/dev/null
t view k.sbt --hot plain | without_stacks | without_path
[ -z "$(ls live)" ] || fail "files remain in the live directory"

# Its rows, and messages if there are none.
t view c.sbt --table sample --columns name,state,weight,stack --limit 3
t export -q c.sbt -f folded -o -
t analyze c.sbt functions
t view c.sbt --hot nothing
quietly record -q -o e.sbt -- true
t view e.sbt --hot scale
