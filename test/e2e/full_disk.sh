# Trains with checkpoints on a disk of 1 MiB. In a mount namespace of its own:
# full_disk.sh FOLDER ARGUMENT...
folder=$1
shift
mount -t tmpfs -o size=1m tmpfs "$folder/disk" || exit 1
for steps in 4 8 40; do
  "$folder/run" "$@" --steps $steps --checkpoint-dir "$folder/disk/run" \
    --checkpoint-every 16 --checkpoint-keep 100 --resume-if-any \
    --save "$folder/model.onnx"
done
echo "ended with $?"
penstock-checkpoint "$folder/disk/run" --verify
ls "$folder/disk/run"
test -s "$folder/model.onnx" && echo "update 40: model saved"
