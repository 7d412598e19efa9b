# The folders that checks of this folder look at already. A check that is given none looks at all that it knows: with the
# last folder clean its list goes.
set(LRUN_FOLDERS_OF_CLASSES src/core src/launcher/cluster src/launcher/rendezvous src/launcher/remote src/launcher/inspect src/launcher/supervise src/launcher/report
  src/launcher/cli src/launcher/multihost src/launcher/commands src/runtime/checkpoint src/runtime/cuda src/runtime/data
  src/runtime/ddp src/runtime/dp src/runtime/launch src/runtime/session include)
set(LRUN_FOLDERS_OF_SENTENCES src/core/base src/core/process src/launcher/inspect src/launcher/remote tests/style
  tests/unit/base tests/unit/process tests/unit/inspect tests/unit/remote tools cmake examples
  docs CONTRIBUTING.md)
