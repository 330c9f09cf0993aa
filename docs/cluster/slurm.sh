#!/usr/bin/env bash
# sbatch --nodes 4 docs/cluster/slurm.sh ENV [options of hindsight-rl train]
# Starts Ray on every node of the job. The learner runs on the first node. Adapt the lines with !.
#SBATCH --job-name=hindsight-rl
#SBATCH --nodes=2                     # !
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16            # !
#SBATCH --time=12:00:00               # !
#SBATCH --signal=B:TERM@120           # SIGTERM to this script two minutes before the end, for a checkpoint
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
environment=${1:?name an environment: sbatch docs/cluster/slurm.sh FetchPush-v4}
shift
source "$HOME/hindsight-rl/bin/activate" # ! a virtual environment that all nodes see
folder="runs/slurm-$SLURM_JOB_ID"     # ! on a shared disk; a job that is queued again keeps its number

export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0 OMP_NUM_THREADS=1
RAY_AUTH_TOKEN=$(python -c "import secrets; print(secrets.token_hex(32))")
export RAY_AUTH_TOKEN                 # srun passes the environment on
address=$(hostname --ip-address | cut -d ' ' -f 1):$((20000 + SLURM_JOB_ID % 20000)) # two jobs on a node have different ports
others=$((SLURM_JOB_NUM_NODES - 1))
workers=$((SLURM_JOB_NUM_NODES * SLURM_CPUS_PER_TASK - 1)) # one core learns

ray start --head --node-ip-address "${address%:*}" --port "${address#*:}" --num-cpus $((SLURM_CPUS_PER_TASK - 1)) \
    --include-dashboard=false
if [ "$others" -gt 0 ]; then
    srun --nodes "$others" --ntasks "$others" --exclude "$(hostname --short)" \
        ray start --block --address "$address" --num-cpus "$SLURM_CPUS_PER_TASK" &
fi

hindsight-rl train "$environment" --engine ray --ray-address "$address" --workers "$workers" --policy-lag $((workers - 1)) \
    --folder "$folder" --resume "$@" &
learner=$!
trap 'kill -TERM "$learner"' TERM
status=0
wait "$learner" || status=$?          # the signal interrupts this one
wait "$learner" || status=$?
if [ "$status" -eq 143 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
ray stop                              # on this node; the other nodes end with the job
exit "$status"
