public import CallBasics

/// The call-progress tones of one country.
///
/// Source: ITU-T E.180 Supplement 2 (various tones used in national networks) and national specifications (Telcordia
/// GR-506 for North America, BT SIN 350 for the United Kingdom, ACIF S002 for Australia), as they stand in the
/// indications of Asterisk (`indications.conf`), against which each value was checked. Where E.180 leaves a range, the
/// value is inside it. A tone that a country does not define is absent.
/// Units: together, the components of a tone have the -10 dBm0 that E.180, section 4, recommends.
public struct CallProgressTones: Hashable, Sendable {
    /// Two capital letters of ISO 3166-1.
    public let country: String
    /// The country in English.
    public let name: String
    private let specs: [CallProgressTone: ToneSpec]

    /// The tones that the country has, in the order of `CallProgressTone`.
    package var tones: [CallProgressTone] { CallProgressTone.allCases.filter { specs[$0] != nil } }

    /// The tone, or nil when the country does not define it.
    public subscript(tone: CallProgressTone) -> ToneSpec? { specs[tone] }

    /// The tones of the country with the ISO 3166-1 code `country`, in any case; `UK` stands for `GB`.
    ///
    /// Throws: `ToneError` that lists the countries known.
    public static func of(country: String) throws(ToneError) -> CallProgressTones {
        let wanted = country.uppercased() == "UK" ? "GB" : country.uppercased()
        guard let found = all.first(where: { $0.country == wanted }) else {
            let known = all.map(\.country).joined(separator: ", ")
            throw ToneError(.unknownCountry, "No tones are known for the country '\(country)'. Known: \(known).")
        }
        return found
    }

    /// Every country known, by code.
    public static let all: [CallProgressTones] = [
        CallProgressTones(
            "AU",
            "Australia",
            [
                .dial: sines(413, 438),
                .ringback: sines(413, 438, on: 400, 200, 400, 2000),
                .busy: sines(425, on: 375, 375),
                .congestion: australianCongestion,
                .callWaiting: sines(425, on: 200, 200, 200, 4400),
                .confirmation: sines(425),
            ]
        ),
        CallProgressTones("CA", "Canada", northAmerican),
        CallProgressTones(
            "DE",
            "Germany",
            [
                .dial: sines(425),
                .ringback: sines(425, on: 1000, 4000),
                .busy: sines(425, on: 480, 480),
                .congestion: sines(425, on: 240, 240),
                .callWaiting: sines(425, on: 200, 200, 200, 5000),
                .specialInformation: specialInformation(gap: 0, pause: 1000),
            ]
        ),
        CallProgressTones(
            "ES",
            "Spain",
            [
                .dial: sines(425),
                .ringback: sines(425, on: 1500, 3000),
                .busy: sines(425, on: 200, 200),
                .congestion: sines(425, on: 200, 200, 200, 200, 200, 600),
                .callWaiting: sines(425, on: 175, 175, 175, 3500),
            ]
        ),
        CallProgressTones(
            "FR",
            "France",
            [
                .dial: sines(440),
                .ringback: sines(440, on: 1500, 3500),
                .busy: sines(440, on: 500, 500),
                .congestion: sines(440, on: 250, 250),
                .callWaiting: sines(440, on: 300, 10_000),
                .specialInformation: specialInformation(gap: 0, pause: 1000),
            ]
        ),
        CallProgressTones(
            "GB",
            "United Kingdom",
            [
                .dial: sines(350, 440),
                .ringback: sines(400, 450, on: 400, 200, 400, 2000),
                .busy: sines(400, on: 375, 375),
                .congestion: sines(400, on: 400, 350, 225, 525),
                .callWaiting: sines(400, on: 100, 4000),
                .specialInformation: specialInformation(gap: 15, pause: 1000),
                .confirmation: sines(1400),
            ]
        ),
        CallProgressTones(
            "IT",
            "Italy",
            [
                .dial: sines(425, on: 200, 200, 600, 1000),
                .ringback: sines(425, on: 1000, 4000),
                .busy: sines(425, on: 500, 500),
                .congestion: sines(425, on: 200, 200),
                .callWaiting: sines(425, on: 400, 100, 250, 100, 150, 14_000),
                .specialInformation: specialInformation(gap: 0, pause: 1000),
            ]
        ),
        CallProgressTones(
            "JP",
            "Japan",
            [
                .dial: sines(400),
                .ringback: modulated(400, by: 16, on: 1000, 2000),
                .busy: sines(400, on: 500, 500),
                .congestion: sines(400, on: 500, 500),
                .callWaiting: modulated(400, by: 16, on: 500, 8000),
            ]
        ),
        CallProgressTones(
            "NL",
            "Netherlands",
            [
                .dial: sines(425),
                .ringback: sines(425, on: 1000, 4000),
                .busy: sines(425, on: 500, 500),
                .congestion: sines(425, on: 250, 250),
                .callWaiting: sines(425, on: 500, 9500),
                .specialInformation: specialInformation(gap: 0, pause: 1000),
            ]
        ),
        CallProgressTones("US", "United States", northAmerican),
    ]

    private static let northAmerican: [CallProgressTone: ToneSpec] = [
        .dial: sines(350, 440),
        .ringback: sines(440, 480, on: 2000, 4000),
        .busy: sines(480, 620, on: 500, 500),
        .congestion: sines(480, 620, on: 250, 250),
        .callWaiting: sines(440, on: 300, 10_000),
        .specialInformation: specialInformation(gap: 0, pause: 1000),
        .confirmation: {
            var bursts = sines(350, 440, on: 100, 100, 100, 100, 100, 100)
            bursts.repeatCount = 1
            return bursts
        }(),
    ]

    /// Every second burst is 10 dB quieter (ACIF S002).
    private static let australianCongestion = ToneSpec(steps: [
        ToneStep([ToneComponent(frequency: 425, level: Decibels(-10))], for: .milliseconds(375)),
        .silence(for: .milliseconds(375)),
        ToneStep([ToneComponent(frequency: 425, level: Decibels(-20))], for: .milliseconds(375)),
        .silence(for: .milliseconds(375)),
    ])

    private init(_ country: String, _ name: String, _ specs: [CallProgressTone: ToneSpec]) {
        self.country = country
        self.name = name
        self.specs = specs
    }

    private static func sines(_ frequencies: Double..., on milliseconds: Int...) -> ToneSpec {
        ToneSpec(
            frequencies: frequencies,
            level: Decibels(frequencies.count == 1 ? -10 : -13),
            cadence: Cadence(milliseconds.map { .milliseconds($0) })
        )
    }

    private static func modulated(_ frequency: Double, by modulation: Double, on milliseconds: Int...) -> ToneSpec {
        ToneSpec(
            [ToneComponent(frequency: frequency, level: Decibels(-10), modulation: modulation)],
            cadence: Cadence(milliseconds.map { .milliseconds($0) })
        )
    }

    /// 950, 1400 and 1800 Hz, each for 330 ms (E.180, section 8).
    private static func specialInformation(gap: Int, pause: Int) -> ToneSpec {
        var steps: [ToneStep] = []
        for frequency in [950.0, 1400, 1800] {
            steps.append(ToneStep([ToneComponent(frequency: frequency, level: Decibels(-10))], for: .milliseconds(330)))
            if gap > 0, frequency < 1800 { steps.append(.silence(for: .milliseconds(gap))) }
        }
        steps.append(.silence(for: .milliseconds(pause)))
        return ToneSpec(steps: steps)
    }
}
