// Package lab joins the game and the training. It trains models at many
// profiles of contributions and wrong labels (cells), fits the accuracy curve
// to them, solves the game on the fitted curve, trains again at the equilibria
// and judges the paper's observations by what came out.
//
// A cell is one training run. It is keyed by what determines its result and
// kept as one small file, so work is never repeated: a run that was killed
// resumes, two runs share a folder, and the results of two machines merge by
// copying files. How a model is trained is a function passed in (Trainer).
package lab
