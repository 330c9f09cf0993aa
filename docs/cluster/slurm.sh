#!/usr/bin/env bash
# sbatch --nodes 4 docs/cluster/slurm.sh ENV [options of hindsight train]
# Ray on every node of the job, the learner on the first. Adapt the lines with !.
#SBATCH --job-name=hindsight
#SBATCH --nodes=2                     # !
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16            # !
#SBATCH --time=12:00:00               # !
#SBATCH --signal=B:TERM@120           # two minutes before the end: time for a checkpoint
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
source "$HOME/hindsight/bin/activate" # ! a virtual environment that all nodes see

environment=${1:?name an environment: sbatch docs/cluster/slurm.sh FetchPush-v4}
shift
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0 OMP_NUM_THREADS=1
RAY_AUTH_TOKEN=$(python -c "import secrets; print(secrets.token_hex(32))") # srun hands it on by the environment
export RAY_AUTH_TOKEN

first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(srun --nodes 1 --ntasks 1 --nodelist "$first" hostname --ip-address | awk '{print $1}')
port=$((20000 + SLURM_JOB_ID % 20000)) # two jobs on a node do not meet
folder="runs/slurm-$SLURM_JOB_ID"      # ! on a disk that survives the job; the same after it was queued again
cores=$SLURM_CPUS_PER_TASK
workers=$((SLURM_JOB_NUM_NODES * cores - 1)) # one core learns

srun --overlap --nodes 1 --ntasks 1 --nodelist "$first" \
    ray start --head --block --node-ip-address "$address" --port "$port" --num-cpus $((cores - 1)) --include-dashboard=false &
sleep 15
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
    srun --overlap --nodes $((SLURM_JOB_NUM_NODES - 1)) --ntasks $((SLURM_JOB_NUM_NODES - 1)) --exclude "$first" \
        ray start --block --address "$address:$port" --num-cpus "$cores" &
fi

srun --overlap --nodes 1 --ntasks 1 --nodelist "$first" \
    hindsight train "$environment" --engine ray --ray-address "$address:$port" --workers "$workers" --lag $((workers - 1)) \
    --folder "$folder" --resume "$@" &
learner=$!
trap 'scancel --signal=TERM "$SLURM_JOB_ID.$(squeue --steps --job "$SLURM_JOB_ID" --noheader --format "%i %j" | awk "/ hindsight/ {print \$1}" | cut -d. -f2 | tail -n 1)"; wait "$learner"; scontrol requeue "$SLURM_JOB_ID"; exit 0' TERM
wait "$learner"
scancel "$SLURM_JOB_ID" # Ray on the nodes has nothing left to do
