#!/bin/sh
# The main job, in this very clone: claim a target, say that work goes on, look, and give the target back.
# The state is kept in this clone's git refs (refs/agent-coord/); nothing leaves the machine.
set -eu
cd "$(dirname "$0")/.."

# The program to show; built from this clone unless another one is named.
program=${AGENT_COORD_PROGRAM:-cargo run --quiet --}

agent_coord() {
  printf '$ agent-coord %s\n' "$*"
  $program "$@"
}

agent_coord claim first-claim --phase exploring
agent_coord heartbeat --phase implementing
agent_coord status
agent_coord release first-claim
