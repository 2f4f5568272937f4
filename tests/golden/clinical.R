# Makes clinical.json: `Rscript tests/golden/clinical.R > tests/golden/clinical.json`, from the root
# of the repository. Needs Debian's r-base-core and r-cran-rms. The tests read what it wrote; they
# do not need R.
suppressMessages(library(rms))

number <- function(x) {
  if (is.list(x)) {
    parts <- mapply(function(name, part) sprintf('"%s": %s', name, number(part)), names(x), x)
    return(paste0("{", paste(parts, collapse = ", "), "}"))
  }
  shown <- sprintf("%.17g", x)
  if (length(x) == 1) shown else paste0("[", paste(shown, collapse = ", "), "]")
}

strict <- glm.control(epsilon = 1e-15, maxit = 100)

clinical <- function(y, p) {
  logit <- qlogis(p)
  line <- glm(y ~ logit, family = binomial, control = strict)
  large <- glm(y ~ offset(logit), family = binomial, control = strict)
  rms <- val.prob(p, y, pl = FALSE)
  # forecasts that are equal, in falling order of outcomes: they end in one block
  fit <- isoreg(p, y)
  at <- fit$ord
  error <- abs(p[at] - fit$yf)
  loess_error <- abs(p - predict(loess(y ~ p)))
  list(
    slope = c(coef(line)[[2]], confint.default(line)[2, ]),
    intercept = c(coef(line)[[1]], confint.default(line)[1, ]),
    in_the_large = c(coef(large)[[1]], confint.default(large)[1, ]),
    observed_expected = sum(y) / sum(p),
    wilson = as.numeric(prop.test(sum(y), length(y), correct = FALSE)$conf.int) / mean(p),
    isotonic = c(mean(error), quantile(error, c(.5, .9, 1), type = 1)),
    val_prob_slope = rms[["Slope"]],
    val_prob_intercept = rms[["Intercept"]],
    val_prob_lowess = c(rms[["Eavg"]], rms[["E90"]], rms[["Emax"]]),
    austin_loess = c(mean(loess_error), quantile(loess_error, c(.5, .9, 1)))
  )
}

flights <- read.csv("examples/scores.csv")
flights <- flights[flights$score > 0 & flights$score < 1, ]

# With ties, few rounds, and forecasts that are too timid.
k <- 0:199
ties <- data.frame(score = (k %% 10) / 20 + 0.25)
ties$outcome <- as.numeric((k * 37) %% 100 < 100 * (1.6 * (ties$score - 0.5) + 0.45))

result <- list(
  versions = list(R = as.numeric(R.version$major) + 0, rms = 6.5),
  flights = clinical(flights$outcome, flights$score),
  ties = clinical(ties$outcome, ties$score)
)
parts <- mapply(function(name, part) sprintf('"%s": %s', name, number(part)), names(result), result)
cat("{", paste(parts, collapse = ",\n "), "}\n", sep = "")
