"""What a caller holds and runs, by rooms: `objects` (DirectML's object model), `graphs` (operators that are
compiled together), `calls` (immediate functions) and `memory` (arrays and buffers of the caller). Here are
only what several rooms need: programs of operators, the reprs of objects, locks across forks. All of it knows
devices as backends (`opendml.targets.backend`), and no target."""
