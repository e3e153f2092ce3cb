//! Dates and times as people write them, in UTC: `2001-01-14`, `2001-01-14 21:55`, `2001/01/14T21:55:30.250Z`, and
//! `Jan 1 2000`.

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// Milliseconds since 1970, if the text is a date with or without a time.
pub(crate) fn millis(text: &str) -> Option<i64> {
    let text = text.trim().trim_end_matches('Z');
    if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return named_month(text);
    }
    let (date, time) = text
        .split_once([' ', 'T'])
        .map_or((text, None), |(date, time)| (date, Some(time)));
    let mut parts = date.split(['-', '/']);
    let (year, month, day) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    if parts.next().is_some() {
        return None;
    }
    Some(days(year, month, day)? * 86_400_000 + time.map_or(Some(0), time_of_day)?)
}

/// `Jan 1 2000`
fn named_month(text: &str) -> Option<i64> {
    let mut parts = text.split_ascii_whitespace();
    let (month, day, year) = (parts.next()?.to_ascii_lowercase(), parts.next()?, parts.next()?);
    let month = MONTHS.iter().position(|name| month == *name)?;
    let month = i64::try_from(month).ok()? + 1;
    let date = days(number(year)?, month, number(day.trim_end_matches(','))?)?;
    parts.next().is_none().then_some(date * 86_400_000)
}

/// `21:55`, `21:55:30`, `21:55:30.250`
fn time_of_day(text: &str) -> Option<i64> {
    let (whole, fraction) = text
        .split_once('.')
        .map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let mut parts = whole.split(':');
    let hour = number(parts.next()?).filter(|hour| *hour < 24)?;
    let minute = number(parts.next()?).filter(|minute| *minute < 60)?;
    let second = parts.next().map_or(Some(0), number).filter(|second| *second < 60)?;
    if parts.next().is_some() {
        return None;
    }
    let millis = match fraction {
        None => 0,
        Some(digits) if !digits.is_empty() && digits.len() <= 9 && number(digits).is_some() => {
            number(&format!("{digits:0<3}")[..3])?
        }
        Some(_) => return None,
    };
    Some(((hour * 60 + minute) * 60 + second) * 1_000 + millis)
}

fn number(digits: &str) -> Option<i64> {
    let plain = !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// Days since 1970 in the Gregorian calendar, counted in years that begin in March.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) || year > 9_999 {
        return None;
    }
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}
