# Draws growth.dat, which the program growth prints, to growth.png.
set terminal pngcairo size 1160,320 font "sans-serif,10"
set output "growth.png"
set multiplot layout 1,4 margins 0.04,0.98,0.1,0.88 spacing 0.045
set logscale xy 2
set grid back linetype 1 linecolor rgb "#e4e4e4"
set key top left reverse Left samplen 1.5
set format y "%g"

ours = "#1f5fa8"
theirs = "#c0632b"

do for [block = 0:2] {
  # The products' arithmetic is drawn through the time of the largest step.
  stats 'growth.dat' index block using 2:4 nooutput
  factor = STATS_max_y / STATS_max_x
  set title "ms a step by ".word("batch width length", block + 1)." ".word("(·,64,128,4) (16,64,·,4) (1,·,256,4)", block + 1)
  plot 'growth.dat' index block using 1:5 with linespoints pointtype 7 pointsize 0.6 linecolor rgb theirs title "libtorch", \
       '' index block using 1:3 with linespoints pointtype 6 pointsize 0.6 linecolor rgb ours title "tapegrad, 1 thread", \
       '' index block using 1:4 with linespoints pointtype 7 pointsize 0.6 linecolor rgb ours title "tapegrad", \
       '' index block using 1:($2 * factor) with lines dashtype 3 linecolor rgb "gray40" title "its arithmetic"
}
set title "peak MB by length (1,·,256,4)"
plot 'growth.dat' index 2 using 1:7 with linespoints pointtype 7 pointsize 0.6 linecolor rgb theirs title "libtorch", \
     '' index 2 using 1:6 with linespoints pointtype 7 pointsize 0.6 linecolor rgb ours title "tapegrad"
unset multiplot
