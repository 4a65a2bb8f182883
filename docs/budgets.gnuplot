# Draws budgets.png: the losses of examples/README.md, by training time.
set terminal pngcairo size 580,360 font "sans-serif,10"
set output "budgets.png"
set logscale x
set grid back linetype 1 linecolor rgb "#e4e4e4"
set xrange [1.2:200]
set yrange [1.3:2.1]
set xtics (2, 10, 60)
set xlabel "minutes of training on two cores"
set ylabel "validation loss per character"
set format y "%.1f"
set key top right reverse Left samplen 1.5

$language_model << END
2 1.5439 "depth 4"
10 1.4698 "depth 6"
60 1.4489 "depth 6, context 256"
END
$nanogpt << END
2 1.9722
10 1.5977
60 1.5656
END

plot $nanogpt with linespoints pointtype 7 pointsize 0.6 linecolor rgb "#c0632b" title "nanoGPT, PyTorch 1.13", \
     $language_model with linespoints pointtype 7 pointsize 0.6 linecolor rgb "#1f5fa8" title "language\\_model", \
     '' using 1:2:3 with labels offset 0,-1 notitle
