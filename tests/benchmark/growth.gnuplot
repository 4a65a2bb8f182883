# Draws growth.dat, the output of the program growth, to growth.png.
set terminal pngcairo size 1160,660 font "sans-serif,10"
set output "growth.png"
set multiplot layout 2,3 margins 0.04,0.98,0.05,0.95 spacing 0.045,0.09
set logscale xy 2
set grid back linetype 1 linecolor rgb "#e4e4e4"
set key top left reverse Left samplen 1.5
set format y "%g"

ours = "#1f5fa8"
theirs = "#c0632b"

array sizes[5] = ["batch (·,64,128,4)", "width (16,64,·,4)", "length (1,·,256,4)", \
                  "layers, GPT of characters (12,64,128,4,·)", "layers, GPT-2's width (4,64,768,12,·)"]

do for [block = 0:4] {
  # The products' arithmetic, scaled to the time of the largest step.
  stats 'growth.dat' index block using 2:4 nooutput
  factor = STATS_max_y / STATS_max_x
  set title "ms a step by ".sizes[block + 1]
  plot 'growth.dat' index block using 1:5 with linespoints pointtype 7 pointsize 0.6 linecolor rgb theirs title "libtorch", \
       '' index block using 1:3 with linespoints pointtype 6 pointsize 0.6 linecolor rgb ours title "tapegrad, 1 thread", \
       '' index block using 1:4 with linespoints pointtype 7 pointsize 0.6 linecolor rgb ours title "tapegrad", \
       '' index block using 1:($2 * factor) with lines dashtype 3 linecolor rgb "gray40" title "its arithmetic"
}
set title "peak MB by length (1,·,256,4)"
plot 'growth.dat' index 2 using 1:7 with linespoints pointtype 7 pointsize 0.6 linecolor rgb theirs title "libtorch", \
     '' index 2 using 1:6 with linespoints pointtype 7 pointsize 0.6 linecolor rgb ours title "tapegrad"
unset multiplot
