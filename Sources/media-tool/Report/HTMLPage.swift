/// A page of HTML that is one file, and loads nothing from elsewhere, whatever is on it.
struct HTMLPage {
    /// As it is, without escapes.
    let title: String
    /// Rules beside those of all pages.
    var style = ""
    let body: String
    /// What shows the values under the pointer; nil for a page without plots.
    var script: String?

    var html: String {
        let scripts = script == nil ? "" : "; script-src 'unsafe-inline'"
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'\(scripts)">
            <title>\(HTMLText.escaped(title))</title>
            <style>
            \(ReportStyle.css)\(style)
            </style>
            </head>
            <body>
            \(body)\(script.map { "<script>\n\($0)\n</script>\n" } ?? "")</body>
            </html>

            """
    }
}
