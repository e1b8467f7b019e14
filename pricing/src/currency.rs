//! Currencies and exchange rates.

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::de::{Deserialize, Deserializer, Error as _};

/// A currency of ISO 4217.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency(&'static str);

/// The active codes of ISO 4217, without metals, funds and test codes.
const CODES: &str = "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL \
    BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR \
    FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY \
    KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU \
    MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD \
    RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY \
    TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG";

impl Currency {
    /// US dollar, the currency of the built-in book.
    pub const USD: Self = Self("USD");

    /// The currency with that code. `None` if ISO 4217 has none.
    #[must_use]
    pub fn new(code: &str) -> Option<Self> {
        CODES.split(' ').find(|known| *known == code).map(Self)
    }

    /// Three capital letters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl Default for Currency {
    fn default() -> Self {
        Self::USD
    }
}

impl std::fmt::Debug for Currency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::fmt::Display for Currency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        Self::new(&code).ok_or_else(|| {
            D::Error::custom(format_args!(
                "{code:?} is not a currency; expected a code of ISO 4217, like EUR"
            ))
        })
    }
}

/// The value of one unit of a currency in the currency of the bills, from a day on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeRate {
    /// The other currency.
    pub from: Currency,
    /// Money in the currency of the bills for one unit of `from`. It is exact and above 0.
    pub rate: Decimal,
    /// First day, UTC. `None` means always.
    pub since: Option<Date>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_currency_is_a_code_of_the_standard_in_capitals() {
        assert_eq!(Currency::new("EUR").unwrap().to_string(), "EUR");
        assert_eq!(Currency::new("USD"), Some(Currency::USD));
        for code in ["", "eur", "EU", "EURO", "XXX", "BTC", "AED AFN", " "] {
            assert_eq!(Currency::new(code), None, "{code:?}");
        }
        assert!(CODES.split(' ').all(|code| code.len() == 3));
        assert!(CODES.split(' ').is_sorted());
    }
}
