// Package gpu finds out what GPUs a machine has, plans how Orchestrator-8B fits
// on them, and runs a local model server. It needs no cgo, reads everything
// below a root directory or through functions that tests replace, and never
// takes a processor for a GPU.
//
// On Linux, loading NVIDIA's library makes a program need the system's dynamic
// loader. The build tag nonvml leaves it out, for static images; GPUs are then
// found by nvidia-smi.
package gpu
