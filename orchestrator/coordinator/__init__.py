"""Who works on what: deal, watch, balance, merge, stop. Knows shares and engines' verbs, not Docker."""
