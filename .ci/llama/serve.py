"""Serves a GGUF model with llama.cpp's own HTTP server on loopback: serve.py MODEL WINDOW PORT."""

import os
import sys
import threading

import xllamacpp

model, window, port = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = model
params.model_alias = {"smollm2"}
params.n_ctx = int(window)
params.n_parallel = 1
# Its threads wait for each other in a loop: one processor is left to the agent and whatever else runs.
params.cpuparams.n_threads = max(1, (os.cpu_count() or 2) - 1)
params.cpuparams_batch.n_threads = params.cpuparams.n_threads
params.hostnames = ["127.0.0.1"]
params.port = int(port)
server = xllamacpp.Server(params)
print(f"serving at {server.listening_address}", flush=True)
threading.Event().wait()
