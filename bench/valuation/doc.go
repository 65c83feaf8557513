// Command valuation compares Grange's valuation methods with shapiq's and
// pyDVL's on this machine, in one run: exact Shapley values from a table, and
// the error of the estimators at equal numbers of evaluations. Then it trains
// every coalition of five members in several ways, and prints how far the
// methods that rebuild models from saved updates are from that.
//
// It needs a Python with the peers installed (pip install shapiq pydvl):
//
//	python3 -m venv bench/.venv && bench/.venv/bin/pip install shapiq pydvl
//	go run ./bench/valuation
package main
