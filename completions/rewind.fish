complete --keep-order --exclusive --command rewind --arguments "(COMPLETE=fish rewind -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
