import MediaEngine

/// Traces as one HTML page that needs nothing else: for each direction the verdict, why it was choppy, plots and figures.
struct ReportPage {
    /// What the page is about: a file's name.
    let title: String
    /// The directions of the call, one or two.
    let legs: [ReportLeg]

    /// The page.
    var html: String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy" content="\(Self.policy)">
        <title>\(HTMLText.escaped(title)): call report</title>
        <style>
        \(ReportStyle.css)
        </style>
        </head>
        <body>
        \(legs.enumerated().map { $1.html(heading: $0 == 0 ? "h1" : "h2", file: $0 == 0 ? title : nil) }.joined())
        <script>
        \(ReportStyle.script)
        </script>
        </body>
        </html>

        """
    }

    /// Nothing is loaded from anywhere, whatever is on the page.
    static let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
}
