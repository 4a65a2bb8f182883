# Plots schedules.dat, the output of the example schedules, as schedules.png.
set terminal pngcairo size 1160,320 font "sans-serif,10"
set output "schedules.png"
set multiplot layout 1,5 margins 0.06,0.99,0.18,0.88 spacing 0.02
set grid back linetype 1 linecolor rgb "#e4e4e4"
set xrange [0:110]
set yrange [0:0.011]
set xtics 0,25,100
set xlabel "step"
set ylabel "learning rate"
set format y "%g"

do for [column = 2:6] {
  if (column > 2) { set format y ""; unset ylabel }
  set title system(sprintf("head -1 schedules.dat | cut -d ' ' -f %d", column)) noenhanced
  plot 'schedules.dat' using 1:column with lines linewidth 2 linecolor rgb "#1f5fa8" notitle
}
unset multiplot
