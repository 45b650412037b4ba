"""fuel-gpu places each operation of a compute graph from numbers measured on this machine."""
