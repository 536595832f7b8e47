# Runs a command, which rank 0 of mpirun begins half a second after the others.
[ "$OMPI_COMM_WORLD_RANK" = 0 ] && sleep 0.5
exec "$@"
